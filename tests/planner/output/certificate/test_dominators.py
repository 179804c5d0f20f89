"""Which family replaces another one: pairs at once, as plain loops over what a certificate states have it."""

from typing import Any

import numpy as np
import pytest

from planner.output.certificate import check as check_certificate


def plainly(problem: check_certificate.Problem, one: int, other: int) -> bool:
    """Whether ``one`` is as free and at most as dear as ``other``, in every piece that the other may have."""
    stated = problem.stated
    first, second = (stated["families"][family] for family in (one, other))
    sides = [
        [
            (rule, side)
            for rule in range(len(stated["rules"]))
            for side in (0, 1)
            if family in stated["rules"][rule][side]
        ]
        for family in (one, other)
    ]
    if first["table"] != second["table"] or first["scope"] != second["scope"] or sides[0] != sides[1]:
        return False
    mine, theirs = problem.families[one], problem.families[other]
    if mine.fewest > theirs.fewest or mine.most < theirs.most:
        return False
    if first["same_host"] and not second["same_host"]:
        return False
    costs = [cost_of_widths(problem, family) for family in (one, other)]
    return all(width in costs[0] and np.all(costs[0][width] <= costs[1][width]) for width in costs[1])


def cost_of_widths(problem: check_certificate.Problem, family: int) -> dict[int, Any]:
    """Return seconds and bytes of the widths of a family that fit somewhere, by width."""
    block = problem.stated["prices"][problem.stated["families"][family]["prices"]]
    last = block["last_bytes"] or block["bytes"]
    rows = zip(block["widths"], block["seconds"], block["bytes"], last, strict=True)
    fitting = problem.families[family].widths
    return {width: np.array([*seconds, *full, *of_last]) for width, seconds, full, of_last in rows if width in fitting}


def stated(seed: int) -> dict[str, Any]:
    """A problem of two tables with thirty families, whose prices are small numbers: many are equal."""
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(8):
        widths = [width for width in (4, 8, 12, 16) if rng.random() < 0.7] or [16]
        seconds, full = rng.integers(1, 3, (len(widths), 2)), rng.integers(1, 3, (len(widths), 1))
        last = full - rng.integers(0, 2, full.shape)
        columns = {"seconds": seconds.tolist(), "bytes": full.tolist(), "last_bytes": last.tolist()}
        blocks.append({"widths": widths, **columns})
    families = [
        {
            "table": family // 15,
            "scope": ("rank", "host")[int(rng.random() < 0.2)],
            "same_host": bool(rng.random() < 0.3),
            "pieces": [1 + int(rng.random() < 0.3), 3 + int(rng.random() < 0.3)],
            "prices": int(rng.integers(0, len(blocks))),
            "dominated_by": None,
        }
        for family in range(30)
    ]
    ranks = {"num_ranks": 4, "ranks_per_host": 2, "slowdown": None, "capacity_bytes": [[2]] * 4}
    phases = {"objective": "step_time", "phases": ["p0", "p1"], "phase_weight": [1, 1], "window_seconds": [0, 0]}
    rules = [[[0, 1, 16], [2, 20]]]
    tables = [{"columns": 16, "ranks": None}] * 2
    of_problem = {"tiers": ["m0"], "beside_seconds": 0, "starts": [], "tables": tables, "rules": rules}
    return {**ranks, **phases, **of_problem, "prices": blocks, "families": families}


@pytest.mark.parametrize("seed", range(8))
def test_families_replace_others_as_plain_loops_have_it(seed: int) -> None:
    problem = check_certificate.Problem(stated(seed))
    count = len(problem.families)
    better, worse = (each.ravel() for each in np.indices((count, count)))
    found = problem.replaces(better, worse)
    assert found.tolist() == [plainly(problem, one, other) for one, other in zip(better, worse, strict=True)]
    assert count < np.count_nonzero(found) < len(found) / 4
