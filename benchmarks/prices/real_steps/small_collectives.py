"""How long collectives of few bytes take on gloo: what a rank pays before any byte counts."""

import time

import torch
import torch.distributed as dist

_NUM_FLOATS = 16  # of each rank
_WARM_UPS = 20


def time_small_collectives(repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each repeat by operation, of all ranks together, as this rank sees them.

    Operations are those of TorchRec's step: all-to-all, reduce-scatter, all-gather and all-reduce of 64 bytes for each
    rank. The ranks meet before each repeat, outside of its time.
    """
    ranks = dist.get_world_size()
    whole, part = torch.zeros(ranks * _NUM_FLOATS), torch.zeros(_NUM_FLOATS)
    parts = list(torch.zeros(ranks, _NUM_FLOATS))
    operations = {
        "all_to_all": lambda: dist.all_to_all_single(torch.empty_like(whole), whole),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
        "all_gather": lambda: dist.all_gather(parts, part),
        "all_reduce": lambda: dist.all_reduce(part),
    }
    found: dict[str, list[float]] = {}
    for name, run in operations.items():
        seconds = []
        for repeat in range(_WARM_UPS + repeats if repeats else 0):
            dist.barrier()
            began = time.perf_counter()
            run()
            if repeat >= _WARM_UPS:
                seconds.append(time.perf_counter() - began)
        found[name] = seconds
    return found
