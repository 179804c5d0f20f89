from planner.solver.partitioners.valid_start import keep_better_start, valid_or_none
from planner.solver.problem import Outcome, Reason
from tests.support.planning.builders import make_assignment, narrowest_shape, random_priced

PRICED = random_priced(0, num_tables=1, fill=0.1)
WHOLE, EVERYWHERE = narrowest_shape(PRICED, 0, 0), narrowest_shape(PRICED, 0, 3)
SLOW, FAST = make_assignment([(WHOLE, 0)]), make_assignment([(EVERYWHERE, 0)])
NOTHING = Outcome(assignment=None, reason=Reason.NO_SOLUTION_FOUND, limit="size", detail="why")


def found(assignment: object) -> Outcome:
    return Outcome(assignment=assignment, reason=Reason.OPTIMAL)  # type: ignore[arg-type]


def test_a_start_that_breaks_a_rule_is_none() -> None:
    assert valid_or_none(PRICED, None) is None
    assert valid_or_none(PRICED, SLOW) is SLOW
    assert valid_or_none(PRICED, make_assignment([(WHOLE, 9)])) is None


def test_a_start_stands_in_for_nothing() -> None:
    preserved = keep_better_start(PRICED, NOTHING, SLOW)
    assert preserved.assignment is SLOW
    assert (preserved.reason, preserved.limit, preserved.detail) == (Reason.FEASIBLE, "size", "why")
    assert keep_better_start(PRICED, NOTHING, None) is NOTHING


def test_the_better_one_is_returned() -> None:
    better = found(FAST)
    assert keep_better_start(PRICED, better, SLOW) is better
    assert keep_better_start(PRICED, found(SLOW), FAST).assignment is FAST
