"""Ids as a batch would look them up: Zipf over rows that lie anywhere in their table."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from api.cli.measuring.lookup_design import TableDesign
from cost_models.measurements.schema import NUM_REUSE_BINS, REUSE_COLUMNS


@dataclass(frozen=True, slots=True)
class Batch:
    """Ids of one table, and how many each sample has."""

    lengths: Any  # (samples,), int64
    ids: Any  # (lookups,), int64


def draw_batches(table: TableDesign, num_samples: int, count: int, device: str) -> list[Batch]:
    """Return batches of a table; the same for a seed, device and version of torch."""
    generator = torch.Generator(device=device).manual_seed(table.seed)
    mean = torch.full((num_samples,), table.pooling, device=device)
    batches = []
    for _ in range(count):
        lengths = torch.poisson(mean, generator=generator).long()
        lengths[0] += int(lengths.sum()) == 0  # a launch without a single id is none
        ids = draw_ids(table.rows, table.alpha, int(lengths.sum()), generator, device)
        batches.append(Batch(lengths, ids))
    return batches


def draw_ids(rows: int, alpha: float, count: int, generator: Any, device: str) -> Any:
    """Draw ids by inverting the integral of x ** -alpha over [1, rows + 1), hottest row first, then scatter the rows.

    The scatter is a multiplication modulo the number of rows by a number without common factor.
    """
    share = torch.rand(count, generator=generator, device=device, dtype=torch.float64)
    if abs(alpha - 1) < 1e-9:
        place = torch.exp(share * math.log(rows + 1)) - 1
    else:
        place = (1 + share * ((rows + 1) ** (1 - alpha) - 1)) ** (1 / (1 - alpha)) - 1
    factor = int(rows * 0.6180339887) | 1
    while math.gcd(factor, rows) != 1:
        factor += 2
    return (place.long().clamp_(0, rows - 1) * factor + 12_345) % rows


def reuse_columns(batches: list[Batch]) -> dict[str, object]:
    """Return how often the ids of batches repeat, each batch for itself, as columns of a measured row."""
    bins = torch.zeros(NUM_REUSE_BINS, dtype=torch.float64)
    for batch in batches:
        _, counts = torch.unique(batch.ids, return_counts=True)
        of_row = torch.log2(counts.double()).ceil().long().clamp_(max=NUM_REUSE_BINS - 1)
        bins += torch.bincount(of_row, minlength=NUM_REUSE_BINS).cpu()
    distinct = float(bins.sum())
    shares = [float(f"{share:.7g}") for share in (bins / distinct).tolist()]
    return {
        "lookups": sum(len(batch.ids) for batch in batches) / len(batches),
        "distinct_rows": distinct / len(batches),
        **dict(zip(REUSE_COLUMNS, shares, strict=True)),
    }
