"""What a plan is worth next to a better one, and what is proven of both, as text for people."""

import math
from collections.abc import Callable

from planner.domain.formats.units import format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.text.layout import paragraph

#: What is less than this apart is the same to people.
_SAME = 5e-5


def explain_improvement(theirs: CompactPlanDocument, ours: CompactPlanDocument, *, is_legal: bool) -> str:
    """Return how much better the second plan document is than the first, and how close to optimal each is.

    ``is_legal``: the first plan breaks no rule. The bound is that of the second plan, over all legal cuts.
    """
    before, after = theirs["objective"], ours["objective"]
    given, found, bound = before["seconds"], after["seconds"], after["lower_bound_seconds"]
    name = f"{after['name']:<15}"
    lines = [
        "Improvement",
        f"  {name}  given  {format_seconds(given)}",
        f"  {'':<15}  found  {format_seconds(found)}   {_change(given, found)}",
        f"  {'':<15}  bound  {format_seconds(bound)}   no legal plan of the spec takes less",
    ]
    if not is_legal:
        lines += paragraph("the given plan breaks rules: its seconds are of what should not run")
    elif bound > 0:
        lines += paragraph(
            f"proven: the given plan takes {_percent(given / found - 1, math.floor)} to"
            f" {_percent(given / bound - 1, math.ceil)} more than the best one, the plan that was found at most"
            f" {_percent(found / bound - 1, math.ceil)} more"
        )
    return "\n".join(lines) + "\n"


def _change(given: float, found: float) -> str:
    if given <= 0 or abs(found / given - 1) < _SAME:
        return "no better plan was found"
    return f"{1 - found / given:.2%} less" if found < given else f"{found / given - 1:.2%} more"


def _percent(share: float, whole: Callable[[float], int]) -> str:
    """``"4.07%"``: rounded down what something is at least, rounded up what it is at most."""
    return f"{whole(max(share, 0.0) * 10_000) / 100:.2f}%"
