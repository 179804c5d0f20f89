"""Whether a model was fitted to enough, by what its document says of its rows."""

import json
from typing import Any

import pytest

from cost_models.learned.reach.coverage import Verdict, verdicts
from cost_models.learned.shipped import shipped_models

SHIPPED: dict[str, Any] = json.loads(shipped_models()["cpu-epyc"])


def rated(
    *,
    launches: int = 111,
    exchanges: int = 91,
    rank_counts: tuple[int, ...] = (2,),
    rows_of_a_curve: int = 282,
    networks: bool = True,
) -> tuple[Verdict, Verdict]:
    """The verdicts on the shipped model, had so much been measured."""
    document = json.loads(json.dumps(SHIPPED))
    groups = {(group["kind"], group["by"]): group for group in document["figures"]["groups"]}
    groups["lookup", "all"]["num_rows"] = launches
    groups["collective", "ranks"] |= {"num_rows": exchanges * rank_counts[0], "group": f"{rank_counts[0]} ranks"}
    for curve in document["exchange"]["curves"]:
        curve["num_rows"] = rows_of_a_curve
        curve["range"]["rank_counts"] = list(rank_counts)
    if not networks:
        document["compute"]["networks"] = []
    lookups, collectives = verdicts(document)
    return lookups, collectives


def test_much_is_enough() -> None:
    lookups, collectives = rated()
    assert (lookups.kind, lookups.enough, lookups.num_rows, lookups.num_held_out) == ("lookup", True, 13_418, 111)
    assert (collectives.kind, collectives.enough, collectives.num_rows) == ("collective", True, 5_306)
    assert collectives.num_held_out == 91  # 182 rows of 2 ranks
    assert lookups.advice == collectives.advice == ""
    assert lookups.text.startswith("Lookups: enough was measured. 13,418 rows. 111 launches held out")
    assert collectives.text.startswith("Collectives: enough was measured. 5,306 rows. 91 exchanges held out")


@pytest.mark.parametrize(("held_out", "enough", "known"), [(30, True, "18%"), (29, False, "19%"), (4, False, "50%")])
def test_errors_need_thirty_held_out_launches_or_exchanges(held_out: int, enough: bool, known: str) -> None:
    for verdict in rated(launches=held_out, exchanges=held_out):
        assert (verdict.enough, verdict.num_held_out) == (enough, held_out)
        assert f"known to about {known} of itself" in verdict.detail
        assert ("with 30 it is 18%" in verdict.detail) is not enough
        assert ("Measure about 300 " in verdict.advice) is not enough


def test_intervals_of_lookups_without_networks_need_nine_launches() -> None:
    eight, nine = rated(launches=8, networks=False)[0], rated(launches=9, networks=False)[0]
    assert "hold 89% of the time, not 90%" in eight.detail  # 8 of 9
    assert "9 are needed" in eight.detail
    assert "rest on about 9 launches." in nine.detail
    assert not rated(launches=8)[0].detail.count("are needed")  # networks judge each other's launches


def test_intervals_of_collectives_need_nineteen_exchanges_of_each_number_of_ranks() -> None:
    assert rated(rows_of_a_curve=38)[1].enough  # 19 of 2 ranks
    thin = rated(rows_of_a_curve=37)[1]
    assert not thin.enough
    assert "all_to_all forward, reduce_scatter rest on as few as 18 exchanges" in thin.detail
    assert "less often than 90%: 19 are needed" in thin.detail
    assert rated(rank_counts=(2, 4), rows_of_a_curve=114)[1].enough  # 19 of 2 and 19 of 4 ranks
    assert not rated(rank_counts=(2, 4), rows_of_a_curve=113)[1].enough


def test_nothing_held_out_is_nothing_known() -> None:
    document = json.loads(json.dumps(SHIPPED)) | {"figures": {}}
    document["compute"]["networks"] = []
    lookups, collectives = verdicts(document)
    for verdict in (lookups, collectives):
        assert not verdict.enough
        assert "None were held out: errors are not known." in verdict.detail
    assert "may hold seldom" in lookups.detail


def test_intervals_that_hold_too_seldom_are_named_with_the_rows() -> None:
    document = json.loads(json.dumps(SHIPPED))
    seldom = {"all": 0.865, "to 64 KiB": 0.686, "backward": 0.784}
    for group in document["figures"]["groups"]:
        if group["kind"] == "lookup":
            group["coverage"] = seldom.get(group["group"], group["coverage"])
    lookups, collectives = verdicts(document)
    assert "made to hold for 90% of rows, and held for 86.5% of those held out" in lookups.detail
    assert "held clearly less: to 64 KiB 68.6%, backward 78.4%. There they are too narrow." in lookups.detail
    assert lookups.text.startswith("Lookups: enough was measured; some intervals are too narrow. ")
    assert "held for 91.4% of those held out" in collectives.detail
    assert (lookups.all_hold, collectives.all_hold) == (False, True)


@pytest.mark.parametrize(
    ("num_rows", "coverage", "holds"),
    [
        (111, 0.865, True),  # of 90 %: exp(-111 * 0.0063) = 0.5
        (111, 0.784, False),  # exp(-111 * 0.058) = 0.0016
        (10, 0.7, True),  # exp(-10 * 0.15) = 0.2
        (2, 0.5, True),
        (3, 0.0, False),  # a tenth three times over
        (10**12, 0.899, False),
        (10**12, 1.0, True),
    ],
)
def test_chance_is_reported_from_intervals_that_are_too_narrow(num_rows: int, coverage: float, holds: bool) -> None:
    for kind in ("lookup", "collective"):
        document = json.loads(json.dumps(SHIPPED))
        ranks = 2 if kind == "collective" else 1  # rows of one exchange are late together
        group = {"kind": kind, "by": "phase", "group": "some", "num_rows": num_rows * ranks, "coverage": coverage}
        of_ranks = [one for one in document["figures"]["groups"] if one["by"] == "ranks"]
        document["figures"]["groups"] = [group, *(one | {"coverage": 0.9} for one in of_ranks)]
        verdict = verdicts(document)[("lookup", "collective").index(kind)]
        assert verdict.all_hold is holds
        assert (f"less: some {coverage:.1%}" in verdict.detail) is not holds


def test_what_was_not_measured_has_no_verdict() -> None:
    assert [one.kind for one in verdicts(SHIPPED | {"compute": None})] == ["collective"]
    assert [one.kind for one in verdicts(SHIPPED | {"exchange": None})] == ["lookup"]
