"""Rules of deduplicated ids: who can do it, what it has a price under, and what it has to leave out."""

from collections.abc import Iterator

from api.specs.assumptions import shown_names
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.analytic.index_dedup import has_dedup
from cost_models.analytic.roofline import RooflineModel
from planner.access.table_columns import table_columns
from planner.domain.problem.problem import REQUEST_LATENCY, Problem
from planner.errors import Issue
from planner.options.runtimes.registry import RUNTIMES

_WHERE = "/model/use_index_dedup"
_OFF = "or set model.use_index_dedup to off"


def check_index_dedup(state: SpecState, issues: IssueCollector) -> None:
    """Report everything that keeps the ids of a spec from being deduplicated, if it asks for that."""
    spec = state.spec
    if spec.model.use_index_dedup == "off" or not issues.is_sound(_WHERE):
        return
    if spec.objective == REQUEST_LATENCY:
        issues.report(
            _WHERE,
            "ids of requests are not deduplicated: a host that serves exchanges none",
            "set it to off",
            reads=("/objective",),
        )
        return
    runtimes = [name for name, runtime in RUNTIMES.items() if runtime.has_index_dedup]
    if spec.runtime not in runtimes:
        issues.report(
            "/runtime",
            f"the runtime {spec.runtime} does not deduplicate ids",
            f"use a runtime that does: {' or '.join(runtimes)}, {_OFF}",
        )
    if spec.cost_model != RooflineModel.name:
        issues.report(
            "/cost_model",
            f"{spec.cost_model} has no price of deduplicated ids",
            f"use the cost model {RooflineModel.name}, {_OFF}",
        )
    if spec.objectives is not None:
        issues.report("/objectives", "ordered objectives are planned without deduplication", f"leave them out, {_OFF}")
    groups = spec.hardware.replica_groups
    if groups is not None and spec.model.use_index_dedup == "auto" and not isinstance(groups.sharding_group_size, int):
        issues.report(
            "/hardware/replica_groups/sharding_group_size",
            "one of the size of sharding groups and deduplication is left to a search, and both are open",
            "give one size, or set model.use_index_dedup to on or off",
        )
    if state.hardware is not None and not has_dedup(state.hardware):
        issues.report(
            _WHERE,
            f"FBGEMM deduplicates ids on GPUs alone, and {spec.hardware.profile} has none",
            "set it to off, or plan for hardware with GPUs",
            reads=("/hardware/profile",),
        )
    if issues.is_sound("/model/tables") and all(table.pooling != "none" for _, table in state.written_tables()):
        issues.report(
            _WHERE,
            "ids of sequences are deduplicated, and no table has the pooling none",
            "set it to off: the sum of a bag needs every id of it",
            reads=("/model/tables",),
        )


def unknown_repeats(problem: Problem) -> Iterator[Issue]:
    """Yield a warning about sequences of which nothing says how often ids repeat."""
    if problem.use_index_dedup is False:
        return
    known = table_columns(problem).distinct_of_one_rank
    names = [
        table.name
        for table, distinct in zip(problem.tables, known.tolist(), strict=True)
        if table.pooling == "none" and distinct != distinct
    ]
    if names:
        yield Issue(
            code="repeats-unknown",
            pointer="/model/tables",
            message=(
                f"nothing says how often ids repeat in {shown_names(names)}: deduplication is priced as if none did, so"
                " that it takes time and saves nothing there"
            ),
            hint="give zipf_alpha, reuse_histogram, access_cdf or statistics in their access",
            severity="warning",
        )
