"""Facts of ranks, of tables and of memory, for the tests of what follows from them."""

from api.client import MemoryFacts
from api.client.job import RankFacts
from api.client.live_table import LiveTable

GB = 10**9


def live_table(name: str, **facts: object) -> LiveTable:
    """A table of a model; by default the ``whole`` one of ``tiny_plan``."""
    default = {
        "module_path": "sparse",
        "num_embeddings": 6,
        "embedding_dim": 8,
        "data_type": "fp32",
        "pooling": "sum",
        "is_weighted": False,
        "feature_names": (name,),
        "optimizer": None,
    }
    return LiveTable(name=name, **(default | facts))


def tiny_model() -> list[LiveTable]:
    """The tables of ``tiny_plan``."""
    return [live_table("whole"), live_table("grid", num_embeddings=5)]


def memory(rank: int, **facts: object) -> MemoryFacts:
    """A rank with a device of its own, on a host that it shares with nobody."""
    default = {
        "device_pool": f"device {rank}",
        "device_free_bytes": 70 * GB,
        "device_total_bytes": 80 * GB,
        "host_pool": f"host {rank}",
        "host_free_bytes": 100 * GB,
        "host_total_bytes": 200 * GB,
    }
    return MemoryFacts(**(default | facts))


def rank_facts(rank: int, **facts: object) -> RankFacts:
    """A rank of a job of 2 on one host."""
    default = {
        "group_size": 2,
        "sharding_group_size": 2,
        "contiguous_groups": False,
        "ranks_per_host": 2,
        "pod_ranks": None,
        "machine": "boot 1",
        "host_name": "node-1",
        "device": "cuda",
        "torchrec": "1.8.0",
        "fingerprint": "sha256:1",
        "expected_digest": None,
        "resident_dense_bytes": 0,
        "memory": memory(rank),
    }
    return RankFacts(**(default | facts))
