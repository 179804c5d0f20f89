"""The program that compiles the searches for a server: ``python -m api.execution.processes.compile_searches``.

It ends with its server, however that one ends: the server holds the other end of this program's input, and the system
closes it even if the server is killed. A signal from the system (prctl(2), PR_SET_PDEATHSIG) would not do: it exists
on Linux alone, and comes if the *thread* ends that started the program.
"""

import os
import sys
import threading
from importlib import import_module

from planner.solver.partitioners.kernels.cache import compiling_alone, is_warm


def end_with_input() -> None:
    """Leave as soon as the input ends; nothing is written there."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(1)


def compile_once() -> None:
    """Compile the searches, or wait for another process that does."""
    with compiling_alone():
        if not is_warm():  # the compiler takes 200 MiB, which those that only wait do not need
            import_module("planner.solver.partitioners.kernels.warm_up").warm()


if __name__ == "__main__":
    # Before the compiler is loaded, which takes a second or two.
    threading.Thread(target=end_with_input, daemon=True).start()
    compile_once()
