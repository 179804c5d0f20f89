"""Which collective a table of nccl-tests is of, from what the table itself says.

nccl-tests divides by the time the bytes of the larger buffer (``algbw``), and that times a factor of the operation and
the ranks (``busbw``): 2(n-1)/n of an all-reduce, (n-1)/n of an all-gather, a reduce-scatter and an all-to-all (and of
a gather and a scatter), 1 of a broadcast, a reduce and a send-receive. So the ratio contradicts a wrong name. Columns
say more: whether sums are made (``redop``), whether one rank is special (``root``), and whether ``count`` is of the
whole buffer or of what one rank gives.

References
----------
NVIDIA/nccl-tests, ``doc/PERFORMANCE.md`` (factors), ``src/*.cu`` (sizes and counts).
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

#: What algbw and busbw are printed to.
_HALF_DIGIT = 0.005
#: Bandwidths below this say nothing: their digits are too few.
_LEAST_BANDWIDTH = 0.1
_ELEMENT_BYTES = {
    "int8": 1, "uint8": 1, "char": 1, "int32": 4, "int": 4, "uint32": 4, "uint": 4, "int64": 8, "uint64": 8,
    "half": 2, "float16": 2, "bfloat16": 2, "float": 4, "double": 8, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1,
    "fp8_e5m2": 1, "f8e4m3fn": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of nccl-tests."""

    twice: bool = False  # the factor is 2(n-1)/n
    whole: bool = False  # the factor is 1
    count_of_one_rank: bool = False  # count x element bytes x n is the size
    sums: bool = False  # prints a redop that is not "none"
    has_root: bool = False

    def factor(self, num_ranks: int) -> float:
        """Return busbw / algbw."""
        return 1.0 if self.whole else (2 if self.twice else 1) * (num_ranks - 1) / num_ranks


OPERATIONS = {
    "all_to_all": Operation(count_of_one_rank=True),
    "reduce_scatter": Operation(count_of_one_rank=True, sums=True),
    "all_gather": Operation(count_of_one_rank=True),
    "all_reduce": Operation(twice=True, sums=True),
    "broadcast": Operation(whole=True, has_root=True),
    "reduce": Operation(whole=True, sums=True, has_root=True),
    "sendrecv": Operation(whole=True, sums=True),
    "gather": Operation(count_of_one_rank=True, has_root=True),
    "scatter": Operation(count_of_one_rank=True, has_root=True),
}
#: Names as programs and people spell them; those that contain others come first.
_NAME = re.compile(
    r"(all[_-]?to[_-]?all|a2a)|(reduce[_-]?scatter)|(all[_-]?gather)|(all[_-]?reduce)|(broadcast|bcast)|(reduce)"
    r"|(send[_-]?recv)|(gather)|(scatter)",
    re.IGNORECASE,
)


class TableLine(NamedTuple):
    """What of a measured line says which operation it is of."""

    size: int
    elements: int  # its column count
    type_name: str
    redop: str | None  # None: there is no such word
    root: int | None
    bandwidths: tuple[tuple[float, float], ...]  # algbw and busbw of each way


def operation_named(text: str) -> str | None:
    """Return the one operation that a text names; ``None`` if it names none, or several."""
    found = {list(OPERATIONS)[next(i for i, part in enumerate(match) if part)] for match in _NAME.findall(text)}
    return found.pop() if len(found) == 1 else None


def ratio_range(lines: Iterable[TableLine]) -> tuple[float, float] | None:
    """Return between what busbw / algbw lies by all lines, given how they are rounded; ``None``: nothing is known."""
    low, high = 0.0, math.inf
    for algorithm, bus in (pair for line in lines for pair in line.bandwidths):
        if algorithm < _LEAST_BANDWIDTH:
            continue
        low = max(low, (bus - _HALF_DIGIT) / (algorithm + _HALF_DIGIT))
        high = min(high, (bus + _HALF_DIGIT) / (algorithm - _HALF_DIGIT))
    return None if math.isinf(high) else (low - 1e-9, high + 1e-9)


def fits_ratio(name: str, num_ranks: int, found: tuple[float, float] | None) -> bool:
    """Whether the ratio that was found can be that of an operation."""
    if found is None or num_ranks == 1:  # one rank sends nothing: nccl-tests prints a busbw of zero, or of algbw
        return True
    return found[0] <= OPERATIONS[name].factor(num_ranks) <= found[1]


def num_ranks_by_counts(lines: Iterable[TableLine]) -> int | None:
    """Return size / (count x element bytes), if all lines agree on it and it is above 1; else ``None``."""
    found = set()
    for line in lines:
        bytes_of_count = line.elements * _ELEMENT_BYTES.get(line.type_name, 0)
        if bytes_of_count and line.size % bytes_of_count == 0:
            found.add(line.size // bytes_of_count)
    return found.pop() if len(found) == 1 and 1 not in found else None


def num_ranks_by_ratio(name: str, found: tuple[float, float] | None) -> int | None:
    """Return the one number of ranks whose ratio was found; ``None``: several would do."""
    operation = OPERATIONS[name]
    if found is None or operation.whole:
        return None
    low, high = (bound / (2 if operation.twice else 1) for bound in found)  # of 1 - 1/n
    if high >= 1:
        return None
    least, most = max(math.ceil(1 / (1 - low) - 1e-9), 2), math.floor(1 / (1 - high) + 1e-9)
    return least if least == most else None


def candidates(lines: list[TableLine], num_ranks: int) -> list[str]:
    """Return the operations that nothing in the lines contradicts."""
    ratio, by_counts = ratio_range(lines), num_ranks_by_counts(lines)
    redops = {line.redop for line in lines}
    roots = {line.root for line in lines if line.root is not None}
    left = []
    for name, operation in OPERATIONS.items():
        if not fits_ratio(name, num_ranks, ratio):
            continue
        if num_ranks > 1 and operation.count_of_one_rank != (by_counts is not None):
            continue
        if redops.isdisjoint({None}) and operation.sums != ("none" not in redops):
            continue
        if redops == {None} and operation.sums and name != "sendrecv":
            continue
        if operation.has_root != any(root >= 0 for root in roots):
            continue
        left.append(name)
    return left
