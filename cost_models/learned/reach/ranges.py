"""How far the measured rows reach: outside, a learned model does not answer.

Seconds outside the range would be an extrapolation that no measurement has checked. A shard that lies outside is
priced by the analytic model and says which feature is at fault.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Bools, Floats
from cost_models.learned.lookups.columns import LookupColumns
from cost_models.learned.ranks.tally import by_rank
from cost_models.protocol import ShardWork
from cost_models.text.number_text import number_text
from cost_models.vocabulary import Kernel

#: A value may pass the ends of the measured range by this share: grids end on round numbers, specs do not.
TOLERANCE = 0.1

#: What is compared with its range, for every shard. Bytes per weight and per row distinguish data types and optimizers,
#: which run other code.
CHECKED: Mapping[str, Callable[[LookupColumns], Floats]] = MappingProxyType(
    {
        "lookups": lambda of: of.lookups,
        "distinct_rows": lambda of: of.distinct_rows,
        "shard_rows": lambda of: of.shard_rows,
        "shard_columns": lambda of: of.shard_columns,
        "outputs": lambda of: of.outputs,
        "bytes_per_weight": lambda of: of.row_bytes / of.shard_columns,
        "output_bytes_per_weight": lambda of: of.output_row_bytes / of.shard_columns,
        "optimizer_bytes_per_row": lambda of: of.state_bytes,
    }
)
#: What is compared with its range, for every rank: sums over its shards.
CHECKED_OF_RANK = ("shards", "lookups", "distinct_rows", "output_bytes")


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the largest value that was measured."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Reject what is no range."""
        if not 0 <= self.low <= self.high < float("inf"):
            raise ValueError(f"Expected 0 <= low <= high, both finite, not {self.low} and {self.high}.")

    def holds(self, values: Floats) -> Bools:
        """Return which values lie within the range and its tolerance."""
        inside: Bools = (values >= self.low * (1 - TOLERANCE)) & (values <= self.high * (1 + TOLERANCE))
        return inside

    def excess(self, values: Floats) -> Floats:
        """Return by how many doublings values pass the largest that was measured; 0 within."""
        ratio: Floats = np.maximum(values / max(self.high * (1 + TOLERANCE), 1e-300), 1.0)
        return np.log2(ratio)

    def text(self) -> str:
        """Say the range."""
        low, high = number_text(self.low), number_text(self.high)
        return low if self.low == self.high else f"{low} to {high}"


def measured_ranges(columns: LookupColumns) -> dict[str, Range]:
    """Return the range of every checked feature over measured shards."""
    return {name: _range(value(columns)) for name, value in CHECKED.items()}


def rank_sums(columns: LookupColumns, rank: NDArray[np.int64], num_ranks: int) -> dict[str, Floats]:
    """Return what is checked of every rank; each array has shape (num_ranks,)."""
    weights = {
        "shards": np.ones(columns.num_shards),
        "lookups": columns.lookups,
        "distinct_rows": columns.distinct_rows,
        "output_bytes": columns.outputs * columns.output_row_bytes,
    }
    return {name: by_rank(weights[name], rank, num_ranks) for name in CHECKED_OF_RANK}


def measured_rank_ranges(sums: Mapping[str, Floats]) -> dict[str, Range]:
    """Return the range of every sum over measured launches."""
    return {name: _range(values) for name, values in sums.items()}


def known_shards(work: ShardWork, columns: LookupColumns, ranges: Mapping[str, Range]) -> Bools:
    """Return which shards lie within all that was measured; shape (num_shards,)."""
    known: Bools = ~other_code(work)
    for name, value in CHECKED.items():
        known &= ranges[name].holds(value(columns))
    return known


def why_unknown(work: ShardWork, columns: LookupColumns, ranges: Mapping[str, Range]) -> tuple[str, ...]:
    """Say for each shard what lies outside; ``""`` where nothing does."""
    texts = [""] * work.num_shards
    for i in np.flatnonzero(~known_shards(work, columns, ranges)).tolist():
        reasons = _other_code_text(work, i)
        one = columns.take(np.array([i]))
        for name, value in CHECKED.items():
            if not ranges[name].holds(value(one))[0]:
                reasons.append(f"{name} {number_text(value(one)[0])} outside the measured {ranges[name].text()}")
        texts[i] = "; ".join(reasons)
    return tuple(texts)


def other_code(work: ShardWork) -> Bools:
    """Return which shards run code that measured rows are not of: they are of fused, pooled, unweighted training."""
    other: Bools = (work.kernel != Kernel.FUSED) | work.is_weighted | ~work.is_pooled | ~work.is_trained
    return other


def _other_code_text(work: ShardWork, shard: int) -> list[str]:
    kernel = Kernel(int(work.kernel[shard]))
    range_texts = {
        f"kernel {kernel.label} was not measured": kernel is not Kernel.FUSED,
        "weighted lookups were not measured": bool(work.is_weighted[shard]),
        "sequences were not measured": not work.is_pooled[shard],
        "lookups without training were not measured": not work.is_trained[shard],
    }
    return [text for text, is_so in range_texts.items() if is_so]


def _range(values: Floats) -> Range:
    return Range(float(values.min()), float(values.max()))
