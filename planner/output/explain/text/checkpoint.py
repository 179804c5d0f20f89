"""What checkpoints take under a plan, as text for people."""

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_bytes, format_seconds
from planner.output.documents.checkpoint import CheckpointFactsDocument, CheckpointSizeDocument
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.text.layout import columns, paragraph


def checkpoint_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the lines about checkpoints, none where the spec says nothing of them."""
    checkpoint = plan.get("checkpoint")
    if not checkpoint:
        return []
    kinds = (("full", checkpoint["full"]), ("largest increment", checkpoint["incremental"]))
    heading: tuple[str, ...] = ("checkpoint", "bytes", "snapshot", "rank", "upload", "host", "mean upload")
    rows = [heading, *(_row(name, size) for name, size in kinds if size is not None)]
    lines = [f"Checkpoints, one in {counted(checkpoint['interval_steps'], 'step')}", *columns(rows)]
    lines += paragraph(_policy(checkpoint))
    lines += paragraph(_amounts(checkpoint))
    lines += paragraph(_cost(checkpoint))
    if checkpoint["warning"] is not None:
        lines += paragraph(f"too late: {checkpoint['warning']}")
    return lines


def _row(name: str, size: CheckpointSizeDocument) -> tuple[str, ...]:
    return (
        name,
        format_bytes(size["bytes"]),
        format_seconds(size["snapshot_seconds"]),
        str(size["slowest_rank"]),
        format_seconds(size["upload_seconds"]),
        str(size["slowest_host"]),
        format_seconds(size["mean_upload_seconds"]),
    )


def _policy(checkpoint: CheckpointFactsDocument) -> str:
    if checkpoint["incremental"] is None:
        return "every checkpoint is full"
    return f"{checkpoint['policy']}: one in {counted(checkpoint['full_every'], 'checkpoint')} is full"


def _amounts(checkpoint: CheckpointFactsDocument) -> str:
    if checkpoint.get("mean_bytes") is None:  # a plan of an earlier version
        return ""
    rate = f"{format_bytes(checkpoint['mean_write_bytes_per_second'])} per second are written on average"
    stored = f"a restore needs {format_bytes(checkpoint['stored_bytes'])} at most"
    return (
        f"{rate}{_less(checkpoint['write_reduction'])}, {stored}{_less(checkpoint['stored_reduction'])}; a full"
        f" checkpoint in fp32 has {format_bytes(checkpoint['full_fp32_bytes'])}"
    )


def _less(reduction: float | None) -> str:
    return "" if reduction is None else f" (1/{reduction:.3g} of full fp32)"


def _cost(checkpoint: CheckpointFactsDocument) -> str:
    # So that the phase of that name and this figure, which is of hosts, are not taken for one another.
    priced = "a part of the objective, which counts every rank at an equal part of its host's rate"
    counts = priced if checkpoint["balanced"] else "no part of the objective"
    return (
        f"an interval takes {format_seconds(checkpoint['interval_seconds'])}, a restore reads for"
        f" {format_seconds(checkpoint['restore_seconds'])}; checkpoints cost"
        f" {format_seconds(checkpoint['lost_seconds_per_step'])} per step, {counts}"
        f" (snapshot rates {checkpoint['snapshot_evidence']})"
    )
