"""Plans of solves beside an implementation of docs/cost-models.md in plain loops."""

from collections.abc import Iterator
from typing import Any

from api.specs.request import SolveRequest
from planner.domain.plan.plan import Plan
from tests.support.oracle.differences import differ, figures
from tests.support.planning.long_plans import to_document

_TOLERANCE = 1e-6  # what rests on the fit of a histogram is no better known


def wrong_figures(request: SolveRequest, plan: Plan) -> Iterator[tuple[str, float, float]]:
    """Yield name, the product's value and the oracle's, of every figure of a plan in which they differ.

    The oracle knows no groups of ranks that are replicas: plans of such groups have nothing compared here.
    """
    if plan.evaluation.replica_groups is not None:
        return
    document: Any = to_document(plan, name="", spec_digest="", hardware_profile="")
    for name, product, oracle in figures(_without_nulls(request.spec), document, plan.evaluation):
        if differ(product, oracle, _TOLERANCE):
            yield name, product, oracle


def _without_nulls(value: Any) -> Any:
    """Leave out what a normalised spec says by ``null``: the field was not given."""
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(one) for one in value]
    return value
