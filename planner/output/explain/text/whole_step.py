"""A whole training step with its dense part, as text for people."""

from planner.domain.formats.units import format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.text.layout import paragraph


def whole_step_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the lines about the whole step, none if the dense part is not timed."""
    step = plan.get("whole_step")
    if step is None:
        return []
    all_reduce, hidden = step["dense_all_reduce_seconds"], step["hidden_all_reduce_seconds"]
    lines = paragraph(
        f"{format_seconds(step['seconds'])}, {step['samples_per_second']:,.0f} samples per second ({step['evidence']})"
    )
    lines += paragraph(
        f"embeddings {format_seconds(step['sparse_seconds'])}, and {format_seconds(step['hidden_sparse_seconds'])}"
        " hidden under dense compute"
    )
    lines += paragraph(
        f"dense compute {format_seconds(step['dense_forward_seconds'])} forward,"
        f" {format_seconds(step['dense_backward_seconds'])} backward"
    )
    if all_reduce > 0:
        lines += paragraph(
            f"all-reduce of dense gradients {format_seconds(all_reduce)}, of which {format_seconds(hidden)} hidden"
        )
    if step["overhead_seconds"] > 0:
        lines += paragraph(f"overhead {format_seconds(step['overhead_seconds'])}")
    return ["Whole step", *lines]
