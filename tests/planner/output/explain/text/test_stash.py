"""Stashed weights as text: bytes, copies and names, and nothing where the spec stashes nothing."""

from dataclasses import replace
from typing import Any

from planner.verification.plan_from_placement import plan_of_placement
from tests.planner.verification.test_stash import placed, problem
from tests.support.planning.builders import ROOFLINE
from tests.support.planning.long_plans import explain_plan, to_document


def reported(stashed: str, *, stashes: bool = True) -> str:
    of = problem() if stashes else replace(problem(), stash=None)
    document: Any = to_document(
        plan_of_placement(of, placed(stashed), ROOFLINE), name="m", spec_digest="sha256:s", hardware_profile="test"
    )
    assert (document["stash"] is not None) == stashes
    text = explain_plan(document)
    return " ".join(text[text.index("Stashed weights") :].split("\n\n")[0].split()) if stashes else text


def test_bytes_copies_and_tables_are_named() -> None:
    # 3 x 256 MB at 30 GB/s
    text = reported("abc")
    assert "3 tables, 768.0 MB on all ranks; 768.0 MB on rank 0, the most" in text
    assert "25.6 ms to the host, 25.6 ms back; dense compute waits 0 s for copies" in text
    assert text.endswith("tables: a, b, c")


def test_a_plan_that_stashes_nothing_says_so() -> None:
    assert reported("").endswith("none: activations fit next to all tables")


def test_a_spec_without_a_stash_has_no_such_lines() -> None:
    assert "Stashed weights" not in reported("", stashes=False)


def test_the_tables_of_a_plan_carry_the_flag_in_its_digest() -> None:
    def digest(stashed: str) -> str:
        plan = plan_of_placement(problem(), placed(stashed), ROOFLINE)
        document: Any = to_document(plan, name="m", spec_digest="sha256:s", hardware_profile="test")
        assert [table["name"] for table in document["tables"] if table.get("stash_weights")] == list(stashed)
        found: str = document["plan_digest"]
        return found

    assert digest("ab") != digest("")
