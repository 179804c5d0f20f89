"""A spec in a few lines for people: how large its model is, and what it has to fit into."""

from api.services.plans.reports import validation_of
from api.specs.request import SolveRequest
from cost_models.text.number_text import counted
from planner.domain.formats.units import format_bytes


def spec_text(request: SolveRequest) -> str:
    """Return the name, the sizes and the memory of a valid spec."""
    totals = validation_of(request).totals
    size, problem = totals.sharding_group_size, request.problem
    groups = "" if size in (None, totals.world_size) else f", in sharding groups of at most {size:,}"
    batch = problem.batch_size_per_rank
    lines = [
        f"{request.name}: valid; {counted(totals.num_tables, 'table')} on {totals.world_size:,} ranks{groups}",
        f"  {totals.num_rows:,} rows, {format_bytes(totals.weight_bytes)} of weights,"
        f" {format_bytes(totals.optimizer_bytes)} of optimizer state",
        f"  {format_bytes(totals.available_bytes)} of memory for tables; {problem.cluster.hardware.profile}",
    ]
    if batch:
        lines.append(
            f"  {batch:,} samples of a rank in a step, {batch * totals.world_size:,} of all;"
            f" {totals.ids_per_sample:,.4g} ids per sample"
        )
    return "\n".join(lines)
