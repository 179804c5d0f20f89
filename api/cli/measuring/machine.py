"""The machine that is measured: its device, how many ranks it has, and what one of them may use."""

import os
from dataclasses import dataclass
from importlib.util import find_spec

from api.cli.errors import BadInput
from api.client.device_names import cpu_name, device_text
from cost_models.text.read_number import whole_number
from planner.solver.machine import usable_cores

_DEFAULT_CPU_RANKS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of device, and the ranks that this machine has of it.

    A rank is an accelerator, or a part of the cores. Embeddings are measured on the share of one rank, so that their
    times go together with those of collectives, in which every rank has its share; and on one core of two, what
    else runs on the machine finds the other one.
    """

    name: str  # as rows call it
    backend: str  # of collectives: "nccl" or "gloo"
    num_ranks: int  # of this machine, or of the job that torchrun started
    ranks_per_host: int
    num_threads: int  # of one rank
    memory_bytes: int  # of one rank

    @property
    def is_cuda(self) -> bool:
        return self.backend == "nccl"

    def device(self, local_rank: int) -> str:
        """Return the device of a rank, as torch calls it."""
        return f"cuda:{local_rank}" if self.is_cuda else "cpu"


def started_by_torchrun() -> bool:
    return {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys()


def variable(name: str) -> int:
    """Return the number that ``torchrun`` has put into a variable. Raises ``BadInput`` if there is another thing."""
    number = whole_number(text := os.environ[name])
    if number is None or number < 0:
        raise BadInput(f"{name} is a number that torchrun sets, not {text[:40]!r}")
    return number


def this_machine(wanted_ranks: int | None = None) -> Machine:
    """Look at this machine: the ranks of ``torchrun``, or as many as are wanted, or one for each CUDA device, or two.

    Raises
    ------
    BadInput
        Where torch is missing, or there are fewer devices or cores than ranks.
    """
    if find_spec("torch") is None:
        raise BadInput("measuring needs PyTorch: pip install 'shardplan[train]'")
    import torch

    cores = usable_cores()
    is_cuda = torch.cuda.is_available()
    most = torch.cuda.device_count() if is_cuda else cores
    if started_by_torchrun():
        if wanted_ranks is not None:
            raise BadInput("--ranks: torchrun has said how many there are; leave it out")
        num_ranks, here = variable("WORLD_SIZE"), variable("LOCAL_WORLD_SIZE")
    else:
        num_ranks = here = wanted_ranks or (most if is_cuda else min(_DEFAULT_CPU_RANKS, most))
    if here > most:
        raise BadInput(f"{here} ranks: this machine has {most} {'CUDA devices' if is_cuda else 'cores'}")
    threads = max(cores // here, 1)
    if is_cuda:
        properties = torch.cuda.get_device_properties(0)
        name, memory_bytes = properties.name, int(properties.total_memory)
    else:
        name = f"{cpu_name()}, {threads} of {cores} cores"
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // here
    return Machine(
        name=device_text(name),
        backend="nccl" if is_cuda else "gloo",
        num_ranks=num_ranks,
        ranks_per_host=here,
        num_threads=threads,
        memory_bytes=memory_bytes,
    )
