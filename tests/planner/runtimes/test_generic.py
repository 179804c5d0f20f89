"""The runtime without rules of its own."""

from cost_models.vocabulary import Kernel, Scheme
from planner.enumerate import enumerate_families
from planner.runtimes.generic import Generic
from tests.planner.builders import make_cluster, make_problem, make_table


def test_it_runs_what_torchrec_does_not() -> None:
    """Means of partial bags, sequences by host, wide shards."""
    tables = [make_table("mean", pooling="mean"), make_table("sequence", pooling="none"), make_table("wide", dim=2048)]
    cluster = make_cluster(2, 2)
    listed = {
        name: {
            (one.table, one.scheme)
            for one in enumerate_families(make_problem(*tables, cluster=cluster, runtime=name)).families
        }
        for name in ("torchrec", "generic")
    }
    more = listed["generic"] - listed["torchrec"]
    assert {(0, Scheme.GRID_SHARD), (1, Scheme.TABLE_ROW_WISE), (2, Scheme.TABLE_WISE)} <= more
    assert listed["torchrec"] <= listed["generic"]


def test_kernels_are_those_offered() -> None:
    table, offered = make_table(), frozenset({Kernel.DENSE, Kernel.FUSED_UVM})
    assert Generic().kernels(table, Scheme.DATA_PARALLEL, offered) == (Kernel.DENSE,)
    assert Generic().kernels(table, Scheme.ROW_WISE, offered) == (Kernel.FUSED_UVM,)
