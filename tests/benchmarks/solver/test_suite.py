"""Targets apply to the instances that they name, and are met by what they ask for."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.peers.peers import PeerFigure
from benchmarks.solver.measured import Measured
from benchmarks.solver.report import document, head, line, mean_gap, mean_ratio, summary
from benchmarks.solver.scaling import slope, stage_growth
from benchmarks.solver.stage_clock import STAGES
from benchmarks.solver.suite import Instance, Row, Sources, Suite, Target
from benchmarks.solver.suites import SUITES

MEASURED = Measured(
    objective_seconds=1.01,
    lower_bound_seconds=1.0,
    relative_gap=0.01,
    seconds=2.0,
    improvements=((0.5, 1.5), (1.0, 1.2), (2.0, 1.01)),
    reason="FEASIBLE",
    limit="time",
    found_by="greedy",
    peak_bytes=10**9,
    stage_seconds=dict.fromkeys(STAGES, 0.25),
)
NO_PLAN = replace(MEASURED, objective_seconds=None, relative_gap=None, improvements=(), reason="INFEASIBLE")


def instance(tables: int = 40, ranks: int = 8, *, objective: str = "step_time", limit: float = 10.0) -> Instance:
    spec = {
        "model": {"tables": [{}] * tables},
        "hardware": {"num_hosts": 1, "ranks_per_host": ranks},
        "objective": objective,
    }
    return Instance(name=f"t{tables}-r{ranks}", spec=spec, time_limit_seconds=limit)


def peer(objective_seconds: float, seconds: float = 10.0, *, own: bool = True) -> PeerFigure:
    return PeerFigure(
        who="x", evidence="", objective_seconds=objective_seconds, seconds=seconds, seconds_are_its_own=own
    )


def row(measured: Measured = MEASURED, peers: Sequence[PeerFigure] = (), of: Instance | None = None) -> Row:
    return Row(instance=of or instance(), peers=tuple(peers), partitioner="greedy", measured=measured)


def test_the_best_peer_is_the_one_to_beat() -> None:
    found = row(peers=[peer(math.inf), peer(1.25), peer(2.0)])
    assert found.best_peer == peer(1.25)
    assert found.ratio == pytest.approx(1.01 / 1.25)
    assert (found.is_worse, found.seconds_to_peer) == (False, 1.0)
    assert row(peers=[peer(1.0)]).is_worse
    assert row(peers=[peer(1.0)]).seconds_to_peer is None
    assert not row(peers=[replace(peer(1.01 / (1 + 1e-5)), tolerance=1e-4)]).is_worse
    assert (row().ratio, row().is_worse) == (None, False)


def test_no_plan_where_a_peer_has_one_is_worse() -> None:
    assert row(NO_PLAN, [peer(1.0)]).is_worse
    assert not row(NO_PLAN, [peer(math.inf)]).is_worse


def test_speedup_is_over_seconds_that_are_the_peers_own() -> None:
    assert row(peers=[peer(1.25)]).speedup == 10.0  # 10 s; ours had 1.2 after 1 s
    assert row(peers=[peer(1.6, 4.0), peer(1.25)]).speedup == 8.0  # 4 s over 0.5 s, 10 s over 1 s
    assert row(peers=[peer(1.0)]).speedup == 0.0
    assert row(peers=[peer(1.25, own=False)]).speedup is None
    wanted = Target(title="", least_speedup=9.0)
    assert not wanted.applies(row())
    assert wanted.met(row(peers=[peer(1.25)]))
    assert not wanted.met(row(peers=[peer(1.6, 4.0)]))


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        (Target(title=""), True),
        (Target(title="", objective="max_rank_time"), False),
        (Target(title="", ranks=16), False),
        (Target(title="", least_tables_per_rank=5.0, below_tables_per_rank=5.1), True),  # 40 / 8
        (Target(title="", below_tables_per_rank=5.0), False),
        (Target(title="", least_tables_per_rank=5.1), False),
        (Target(title="", with_peer=True), False),
        (Target(title="", names=frozenset({"t40-r8"})), True),
        (Target(title="", names=frozenset({"other"})), False),
        (Target(title="", but=frozenset({"t40-r8"})), False),
        (Target(title="", but=frozenset({"other"})), True),
        (Target(title="", most_seconds=10.0), True),
        (Target(title="", most_seconds=1.0), False),  # a solve of 10 s says nothing about one of 1 s
        (Target(title="", least_limit_seconds=10.0), True),
        (Target(title="", least_limit_seconds=60.0), False),
    ],
)
def test_which_instances_are_meant(target: Target, meant: bool) -> None:
    assert target.applies(row()) is meant


@pytest.mark.parametrize(
    ("target", "met"),
    [
        (Target(title="", most_gap=0.01), True),
        (Target(title="", most_gap=0.009), False),
        (Target(title="", most_seconds=2.0), True),
        (Target(title="", most_seconds=1.9), False),
        (Target(title="", most_first_seconds=0.5), True),
        (Target(title="", most_first_seconds=0.4), False),
        (Target(title="", most_bytes=10**9), True),
        (Target(title="", most_bytes=10**8), False),
        (Target(title="", proven=True), False),
        (Target(title="", solved=True), True),
    ],
)
def test_what_is_met(target: Target, met: bool) -> None:
    assert target.met(row()) is met


def test_without_a_plan_little_is_met() -> None:
    late = Target(title="", most_first_seconds=100.0)
    for target in (
        late,
        Target(title="", most_gap=1.0),
        Target(title="", solved=True),
        Target(title="", never_worse=True),
    ):
        assert not target.met(row(NO_PLAN))


def test_means_are_geometric() -> None:
    assert mean_gap([0.0, 0.21]) == pytest.approx(0.1)  # sqrt(1 x 1.21) - 1
    assert mean_gap([]) is None
    rows = [row(peers=[peer(1.01 / 0.5)]), row(peers=[peer(1.01 / 2.0)]), row(NO_PLAN, [peer(1.0)]), row()]
    assert mean_ratio(rows) == pytest.approx(1.0)


def test_summary_judges_the_default_alone() -> None:
    suite = Suite(
        name="s",
        title="t",
        instances=lambda _: iter(()),
        targets=(Target(title="gap", most_gap=0.01),),
        most_mean_ratio=0.9,
        most_mean_seconds=3.0,
        notes=lambda rows: [f"{len(rows)} rows"],
    )
    wide = replace(MEASURED, relative_gap=0.5)
    rows = [
        row(peers=[peer(2.02)]),
        row(wide, [peer(2.02)], instance(50)),
        replace(row(NO_PLAN), partitioner="mathopt"),
    ]
    reported = list(summary(suite, rows, "greedy"))
    assert reported[0] == "suite s: t; 2 instances"
    assert "  greedy: gap: 1 of 2" in reported
    assert "  greedy: geometric mean of the ratios 0.5000, wanted at most 0.9" in reported
    assert "  greedy: 2.00 s in the mean, wanted at most 3" in reported
    assert reported[-1] == "  greedy: 2 rows"
    assert not any("mathopt:" in text for text in reported)
    assert max(map(len, reported)) <= 120


def test_a_row_fits_and_its_document_is_finite() -> None:
    large = replace(MEASURED, objective_seconds=12.3, peak_bytes=9 * 10**9, seconds=1234.5, limit="deterministic_time")
    assert len(line(row(large, [peer(1.0)]))) <= 120
    (entry,) = document([row(NO_PLAN, [peer(math.inf), peer(1.0)])])
    assert entry["ratio_to_best_peer"] is None
    assert [one["objective_seconds"] for one in entry["peers"]] == [None, 1.0]
    assert entry["stage_seconds"]["search"] == 0.25


def test_peers_are_named_with_their_evidence() -> None:
    reported = list(head(instance(), [replace(peer(1.5), evidence="word " * 40), peer(math.inf, 0.5)]))
    assert reported[0] == "t40-r8  (40 tables x 8 ranks, limit 10 s)"
    assert reported[1].startswith("  peer x: 1500.0000 ms in 10.00 s (word")
    assert "  peer x: no plan in 0.50 s ()" in reported
    assert max(map(len, reported)) <= 120


def test_growth_is_the_slope_of_logarithms() -> None:
    assert slope([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) == pytest.approx(2.0)
    assert slope([(1.0, 1.0), (1.0, 2.0)]) is None
    rows = [
        row(
            replace(MEASURED, stage_seconds=dict.fromkeys(STAGES, 0.001 * tables) | {"prune": 1e-4}),
            of=instance(tables),
        )
        for tables in (100, 200, 400)
    ]
    reported = stage_growth(rows)
    assert "price: seconds grow as tables to the power of 1.00" in reported
    assert not any(text.startswith(("prune", "search", "finish")) for text in reported)


def test_more_ranks_are_counted_with_what_cannot_be() -> None:
    def on(ranks: int, case: str, objective: float, bound: float) -> Row:
        measured = replace(MEASURED, objective_seconds=objective, lower_bound_seconds=bound)
        return row(measured, [peer(math.inf)], replace(instance(ranks=ranks), case=case))

    rows = [
        *(on(8, "a", 2.0, 1.9), on(16, "a", 1.5, 1.4)),
        *(on(8, "b", 2.0, 1.9), on(16, "b", 2.2, 2.1)),
        *(on(8, "c", 2.0, 1.9), on(16, "c", 2.2, 1.9)),
        *(on(8, "d", 2.0, 1.9), on(4, "d", 3.0, 2.9)),
    ]
    ranks, dead_ends = SUITES["neuroshard"].notes(rows)
    assert ranks == "16 ranks no worse than 8: 1 of 3 tasks; no plan could be so for 1, by the bound"
    assert dead_ends == "instances on which NeuroShard's search finds no plan: 8 of 8"


@pytest.mark.parametrize("name", SUITES)
def test_suites_start_with_an_instance_and_pass_over_what_is_not_there(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = Sources(shared=tmp_path, peer_time_limit_seconds=1.0, live=False)
    first = next(SUITES[name].instances(sources), None)
    golden = "without TorchRec's golden instances"
    lacking = {"torchrec": golden, "torchrec_space": golden, "neuroshard": "without NeuroShard's tasks"}
    if name == "public":
        list(SUITES[name].instances(sources))
        lacking[name] = "without its models"
    assert (first is None) is (name in {"neuroshard", "torchrec_space"})
    assert lacking.get(name, "") in capsys.readouterr().err
    if first is not None:
        assert first.num_tables == len(first.spec["model"]["tables"])


def test_tasks_alternate_widths_and_come_on_three_sizes(shared: Path) -> None:
    if not (shared / "meta_dlrm_2021" / "tables.json").is_file():
        pytest.skip("no tables.json in ../shared/meta_dlrm_2021")
    made = SUITES["neuroshard"].instances(Sources(shared=shared, peer_time_limit_seconds=1.0, live=False))
    first = [next(made) for _ in range(6)]
    assert [(one.case, one.num_ranks) for one in first[:3]] == [("dim4-i000", ranks) for ranks in (4, 8, 16)]
    assert {one.case for one in first[3:]} == {"dim8-i000"}
    constraints = first[0].spec["model"]["tables"][0]["constraints"]
    assert constraints["sharding_types"] == ["table_wise", "column_wise"]
