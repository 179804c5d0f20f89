"""What a plan needs of the memory that is free, rank by rank and pool by pool."""

from api.client import MemoryFacts
from api.client.memory import memory_issues
from tests.support.client.jobs import GB, memory
from tests.support.client.plans import tiny_plan

TYPES = {"whole": "fp32", "grid": "fp16"}


def issues(plan: dict, *facts: MemoryFacts, resident: int = 0) -> tuple[list[str], list[str]]:
    """Reasons that ask for a new plan, and warnings."""
    found, warnings = memory_issues(
        plan,
        facts,
        data_types=TYPES,
        plan_ranks=range(len(facts)),
        resident_dense_bytes=[resident] * len(facts),
    )
    assert {difference.verdict for difference in found} <= {"replan"}
    return [difference.text for difference in found], warnings


def with_ledger(**tables: int) -> dict[str, object]:
    """A plan that says what both ranks need: tables by tier, and 5 GB reserved next to a margin of 12 GB."""
    reserved = {"margin": 12 * GB, "dense_parameters": 4 * GB, "input_batches": GB, "collective_buffers": 0}
    ranks = [{"rank": rank, "bytes": tables, "reserved_bytes": {"hbm": reserved}} for rank in (0, 1)]
    return tiny_plan() | {"ranks": ranks}


def test_weights_alone_where_the_plan_has_no_ledger() -> None:
    # whole: 6 x 8 fp32 on rank 1, 192 B; grid: columns 2 x 4 of 3 rows on rank 0, of 2 on rank 1, fp16: 48 and 32 B
    assert issues(tiny_plan(), memory(0, device_free_bytes=48), memory(1, device_free_bytes=224)) == ([], [])
    reasons, _ = issues(
        tiny_plan(), memory(0, device_free_bytes=47), memory(1, device_free_bytes=223, device_total_bytes=10**6)
    )
    assert reasons[1] == (
        "rank 1: the plan needs 224 B of device memory (224 B for tables, 0 B reserved for the rest),"
        " 223 B of 1.0 MB are free (device 1)"
    )
    assert reasons[0].startswith("rank 0: the plan needs 48 B")


def test_a_ledger_that_says_too_little_is_not_believed() -> None:
    reasons, _ = issues(with_ledger(hbm=1), memory(0, device_free_bytes=5 * GB), memory(1))
    assert reasons == [
        "rank 0: the plan needs 5.0 GB of device memory (48 B for tables, 5.0 GB reserved for the rest),"
        " 5.0 GB of 80.0 GB are free (device 0)"
    ]


def test_tables_and_reservations_must_fit_and_the_margin_should() -> None:
    plan = with_ledger(hbm=50 * GB)  # 55 GB with what is reserved, 67 GB with the margin
    assert issues(plan, memory(0, device_free_bytes=67 * GB), memory(1)) == ([], [])
    assert issues(plan, memory(0, device_free_bytes=67 * GB - 1), memory(1)) == (
        [],
        [
            "rank 0: the plan needs 55.0 GB of device memory (50.0 GB for tables, 5.0 GB reserved for the rest),"
            " 67.0 GB of 80.0 GB are free (device 0), which leaves less than the plan's margin of 12.0 GB"
        ],
    )
    (reason,), warnings = issues(plan, memory(0), memory(1, device_free_bytes=55 * GB - 1))
    assert reason.startswith("rank 1: the plan needs 55.0 GB")
    assert warnings == []


def test_dense_parameters_that_are_there_need_no_room() -> None:
    facts = memory(0, device_free_bytes=52 * GB), memory(1)
    assert issues(with_ledger(hbm=50 * GB), *facts)[0] != []
    assert issues(with_ledger(hbm=50 * GB), *facts, resident=3 * GB)[0] == []
    beyond = memory(0, device_free_bytes=51 * GB - 1), memory(1)  # they are never more than the plan reserved
    assert issues(with_ledger(hbm=50 * GB), *beyond, resident=9 * GB)[0] != []


def test_ranks_of_one_host_share_its_memory() -> None:
    plan = with_ledger(hbm=GB, ddr=60 * GB)
    shared = [memory(rank, host_pool="node-1") for rank in (0, 1)]
    assert issues(plan, *shared)[0] == [
        "ranks 0, 1: the plan needs 120.0 GB of host memory (120.0 GB for tables, 0 B reserved for the rest),"
        " 100.0 GB of 200.0 GB are free (node-1)"
    ]
    assert issues(plan, memory(0), memory(1)) == ([], [])


def test_ranks_on_one_device_share_it() -> None:
    plan = with_ledger(hbm=40 * GB)
    both = [memory(rank, device_pool="GPU 1 of node-1") for rank in (0, 1)]
    assert issues(plan, *both)[0] == [
        "ranks 0, 1: the plan needs 90.0 GB of device memory (80.0 GB for tables, 10.0 GB reserved for the rest),"
        " 70.0 GB of 80.0 GB are free (GPU 1 of node-1)"
    ]


def test_on_cpu_all_tiers_are_the_hosts_memory() -> None:
    plan = with_ledger(hbm=40 * GB, ddr=30 * GB)
    facts = [memory(rank, device_pool="node-1", host_pool="node-1") for rank in (0, 1)]
    reasons, _ = issues(plan, *facts)
    assert reasons == [
        "ranks 0, 1: the plan needs 150.0 GB of memory (140.0 GB for tables, 10.0 GB reserved for the rest),"
        " 70.0 GB of 80.0 GB are free (node-1)"
    ]


def test_shards_in_host_memory_take_none_of_the_device() -> None:
    plan = tiny_plan()
    plan["tables"][0]["shards"][0]["tier"] = "ddr"
    reasons, _ = issues(plan, memory(0), memory(1, device_free_bytes=32, host_free_bytes=191))
    assert reasons == [
        "rank 1: the plan needs 192 B of host memory (192 B for tables, 0 B reserved for the rest),"
        " 191 B of 200.0 GB are free (host 1)"
    ]


def test_ledgers_that_are_none() -> None:
    for ranks in (7, [7], [{"rank": "0"}], [{"rank": 0, "bytes": 7, "reserved_bytes": {"hbm": [1]}}]):
        assert issues(tiny_plan() | {"ranks": ranks}, memory(0), memory(1)) == ([], [])
