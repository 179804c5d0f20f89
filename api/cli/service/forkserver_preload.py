"""What the process loads that solver processes are forked from; ``api.execution.processes.slot`` has it imported there.

To import it binds a process to the life of its parent: nothing else may.
"""

import contextlib
import gc
from importlib import import_module

from api.execution.processes.child import start_parent

start_parent()
# What fails to load here fails again in the processes, where a caller hears of it.
with contextlib.suppress(Exception):
    import_module("api.cli")  # the main module of servers and workers, which every process reads again
    import_module("api.execution.processes.solve").load_solvers()
# What is loaded for good is not looked at again, and stays shared with the processes.
gc.collect()
gc.freeze()
