"""Which collectives and copies are measured, in which order: balanced random designs that may stop anywhere."""

from dataclasses import dataclass

from api.cli.measuring.sequence import log_between, one_of, point, shares

_KIB, _MIB = 1024, 1024**2
_LEAST_BYTES, _MOST_BYTES = _KIB, 16 * _MIB
_MOST_SKEW_SECONDS = 0.005
#: Half of all collectives are all-to-alls, which embeddings run most, each direction for itself.
_OPERATIONS = ("all_to_all", "reduce_scatter", "all_to_all", "all_gather", "all_to_all", "all_reduce")
_COPY_OPERATIONS = ("gather", "stream")
_CUDA_COPY_OPERATIONS = ("gather", "stream", "gather", "host_to_device", "gather", "device_to_host")
#: Streams of the sequences of points: each place in a list of operations has its own, for operations take turns as the
#: digits of the sequences do.
_WIDTHS, _SKEWS, _COLLECTIVES, _COPIES = 8, 9, 16, 32
LAUNCHES_PER_TASK = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveLaunch:
    """One collective of all ranks.

    ``part_bytes[r]`` is what rank r gives to each rank in the forward direction of an all-to-all (the output columns
    of its tables for one rank's samples), and what each gives to rank r in the backward direction; of the other
    collectives all parts are alike.
    """

    task: str
    operation: str
    direction: str  # of an all-to-all, else ""
    part_bytes: tuple[int, ...]
    start_seconds: tuple[float, ...]  # how long each rank waits before it joins

    def columns(self, rank: int, backend: str) -> dict[str, object]:
        return {
            "kind": "collective",
            "task": self.task,
            "implementation": backend,
            "operation": self.operation,
            "direction": self.direction,
            "start_seconds": self.start_seconds[rank],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLaunch:
    """The same copy by the first ``contending`` ranks at the same time."""

    task: str
    operation: str
    copied_bytes: int
    row_bytes: int  # of a gather, else 0
    contending: int

    def columns(self, _rank: int, _backend: str) -> dict[str, object]:
        return {
            "kind": "copy",
            "task": self.task,
            "implementation": "torch_index_select" if self.operation == "gather" else "torch_copy",
            "operation": self.operation,
            "copied_bytes": self.copied_bytes,
            "row_bytes": self.row_bytes or None,
            "contending": self.contending,
        }


def collective_launch(index: int, seed: int, num_ranks: int) -> CollectiveLaunch:
    """Return collective ``index`` of the design of a seed."""
    turn, place = divmod(index, len(_OPERATIONS))
    of_bytes, of_skew, of_direction, of_evenness = point(turn, 4, seed, _COLLECTIVES + place)
    operation = _OPERATIONS[place]
    sent = log_between(of_bytes, _LEAST_BYTES, _MOST_BYTES)  # by a rank, on average
    widths = [1.0] * num_ranks
    if operation == "all_to_all" and of_evenness > 0.25:  # a quarter of them is even
        widths = [0.1 + share for share in shares(index, num_ranks, seed, _WIDTHS)]
    mean = sum(widths) / num_ranks
    skews = shares(index, num_ranks, seed, _SKEWS) if of_skew > 0.5 else (0.0,) * num_ranks
    first = min(skews)
    return CollectiveLaunch(
        task=f"seed{seed}-collectives{index // LAUNCHES_PER_TASK}",
        operation=operation,
        direction=one_of(of_direction, ("forward", "backward")) if operation == "all_to_all" else "",
        part_bytes=tuple(4 * max(round(sent * width / mean / num_ranks / 4), 1) for width in widths),
        start_seconds=tuple(round((skew - first) * _MOST_SKEW_SECONDS, 6) for skew in skews),
    )


def copy_launch(index: int, seed: int, num_ranks: int, is_cuda: bool) -> CopyLaunch:
    """Return copy ``index`` of the design of a seed."""
    operations = _CUDA_COPY_OPERATIONS if is_cuda else _COPY_OPERATIONS
    turn, place = divmod(index, len(operations))
    of_bytes, of_row, of_contending = point(turn, 3, seed, _COPIES + place)
    operation = operations[place]
    scale = 16 if is_cuda else 1
    most = 64 * _MIB if operation.startswith(("host", "device")) else 32 * _MIB * scale
    row_bytes = 4 * round(log_between(of_row, 16, 4096) / 4) if operation == "gather" else 0
    copied = round(log_between(of_bytes, 64 * _KIB * scale, most))
    return CopyLaunch(
        task=f"seed{seed}-copies{index // LAUNCHES_PER_TASK}",
        operation=operation,
        copied_bytes=max(copied // row_bytes, 1) * row_bytes if row_bytes else copied // 4 * 4,
        row_bytes=row_bytes,
        contending=1 + int(of_contending * num_ranks),
    )
