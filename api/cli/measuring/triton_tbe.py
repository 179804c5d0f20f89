"""Table-batched embeddings in Triton, for CUDA machines without FBGEMM: one launch for all tables, AdaGrad fused in.

Forward: one program for each bag, a (table, sample) pair, which sums the rows of its ids. Backward: the ids of all
tables, numbered through, are sorted, so that equal ones form a run, and each run updates its row by row-wise AdaGrad,

.. math:: s \\leftarrow s + \\frac{1}{d} \\sum_j g_j^2, \\qquad w \\leftarrow w - \\eta \\frac{g}{\\sqrt{s} + \\epsilon}

with g the sum of the gradients of all bags that looked the row up, d its columns and s its state. Sorting belongs to
the backward pass, and to its time, as in FBGEMM. Every row is written once: nothing is atomic, and nothing waits for
the host.

A row that half of all ids hit must not keep one program busy while all others have ended. Sorted ids are therefore
cut into tiles: first the part of a run that came into a tile from the tile before is summed for itself, one program
for each tile; then one program for each run, at its first id, sums what is left in its tile, and adds the sums of the
tiles that the run goes on in.

References
----------
FBGEMM ``split_embeddings``: the layout of ids and offsets, and what the fused backward pass does; it also cuts long
runs into parts.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from api.cli.measuring.lookup_design import DataType, TableDesign
from api.cli.measuring.training_constants import EPSILON, INITIAL_WEIGHT, LEARNING_RATE

TILE = 128  # ids
#: Compiled once for all of their values: a run measures hundreds of them.
_SIZES = ["samples", "width", "count"]


@triton.jit(do_not_specialize=_SIZES[:2])
def _forward(weights, ids, offsets, weight_start, column_start, output, samples, width, BLOCK: tl.constexpr):
    """``output[sample, columns of table] = sum of the rows of bag (table, sample)``."""
    bag = tl.program_id(0)
    table, sample = bag // samples, bag % samples
    first_column = tl.load(column_start + table)
    columns = tl.load(column_start + table + 1) - first_column
    start = tl.load(weight_start + table)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for place in range(tl.load(offsets + bag), tl.load(offsets + bag + 1)):
        row = tl.load(ids + place)
        total += tl.load(weights + start + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(output + sample.to(tl.int64) * width + first_column + column, total, mask=inside)


@triton.jit(do_not_specialize=_SIZES)
def _sum_in_tile(
    ordered,
    bags,
    gradient,
    first,
    count,
    samples,
    width,
    first_column,
    columns,
    TILE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum the gradients of the ids from ``first`` to the end of their run or tile."""
    row = tl.load(ordered + first)
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    end = tl.minimum((first // TILE + 1) * TILE, count)
    place = first
    goes_on = place < end  # always
    while goes_on:
        sample = (tl.load(bags + place) % samples).to(tl.int64)
        total += tl.load(gradient + sample * width + first_column + column, mask=column < columns, other=0.0)
        place += 1
        goes_on = tl.load(ordered + place, mask=place < end, other=-1) == row
    return total


@triton.jit(do_not_specialize=_SIZES)
def _sum_tiles(
    ordered, bags, gradient, column_start, sums, count, samples, width, TILE: tl.constexpr, BLOCK: tl.constexpr
):
    """``sums[tile] = gradients of the run that came into the tile from the one before``, where one did."""
    tile = tl.program_id(0) + 1  # nothing comes into the first one
    first = tile * TILE
    if tl.load(ordered + first) == tl.load(ordered + first - 1):
        table = tl.load(bags + first) // samples
        first_column = tl.load(column_start + table)
        columns = tl.load(column_start + table + 1) - first_column
        total = _sum_in_tile(ordered, bags, gradient, first, count, samples, width, first_column, columns, TILE, BLOCK)
        tl.store(sums + tile.to(tl.int64) * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit(do_not_specialize=_SIZES)
def _update(
    weights,
    squares,
    ordered,
    bags,
    gradient,
    row_start,
    weight_start,
    column_start,
    sums,
    count,
    samples,
    width,
    rate,
    epsilon,
    TILE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Update the row of the run that begins at this program's id, where one does."""
    first = tl.program_id(0)
    row = tl.load(ordered + first)  # numbered through all tables
    before = tl.load(ordered + tl.maximum(first - 1, 0))
    if (first == 0) | (before != row):
        table = tl.load(bags + first) // samples
        first_column = tl.load(column_start + table)
        columns = tl.load(column_start + table + 1) - first_column
        column = tl.arange(0, BLOCK)
        inside = column < columns
        total = _sum_in_tile(ordered, bags, gradient, first, count, samples, width, first_column, columns, TILE, BLOCK)
        last_tile = (count - 1) // TILE
        tile = first // TILE + 1
        goes_on = tl.load(ordered + tile * TILE, mask=tile <= last_tile, other=-1) == row
        while goes_on:
            total += tl.load(sums + tile.to(tl.int64) * BLOCK + column)
            tile += 1
            goes_on = tl.load(ordered + tile * TILE, mask=tile <= last_tile, other=-1) == row
        state = tl.load(squares + row) + tl.sum(total * total, axis=0) / columns
        tl.store(squares + row, state)
        where = weights + tl.load(weight_start + table) + (row - tl.load(row_start + table)) * columns + column
        old = tl.load(where, mask=inside, other=0.0).to(tl.float32)
        new = old - rate * total / (tl.sqrt(state) + epsilon)
        tl.store(where, new.to(weights.dtype.element_ty), mask=inside)


class TritonTables:
    """Tables of one launch; see :class:`api.cli.measuring.embeddings.FusedTables`."""

    def __init__(self, tables: Sequence[TableDesign], data_type: DataType, device: str) -> None:
        def starts(sizes: list[int]) -> Any:
            return torch.tensor([0, *sizes], device=device).cumsum(0)

        self._row_start = starts([table.rows for table in tables])
        self._weight_start = starts([table.rows * table.columns for table in tables])
        self._column_start = starts([table.columns for table in tables])
        self._width, self._num_tables = sum(table.columns for table in tables), len(tables)
        self._block = max(triton.next_power_of_2(max(table.columns for table in tables)), 16)
        dtype = torch.float16 if data_type == "fp16" else torch.float32
        num_weights = sum(table.rows * table.columns for table in tables)
        self.weights = torch.full((num_weights,), INITIAL_WEIGHT, dtype=dtype, device=device)
        self.squares = torch.zeros(sum(table.rows for table in tables), device=device)
        self._looked_up: tuple[Any, Any] | None = None

    def forward(self, ids: Any, offsets: Any) -> Any:
        """See ``FusedTables``."""
        samples = (len(offsets) - 1) // self._num_tables
        output = torch.empty((samples, self._width), device=ids.device)
        _forward[(samples * self._num_tables,)](
            self.weights,
            ids,
            offsets,
            self._weight_start,
            self._column_start,
            output,
            samples,
            self._width,
            BLOCK=self._block,
        )
        self._looked_up = ids, offsets
        return output

    def backward(self, output: Any, gradient: Any) -> None:
        """See ``FusedTables``; ``output`` is that of the last forward pass."""
        if self._looked_up is None:
            raise ValueError("Expected a forward pass before the backward pass.")
        ids, offsets = self._looked_up
        samples, count = output.shape[0], len(ids)
        bag = torch.repeat_interleave(
            torch.arange(len(offsets) - 1, device=ids.device), offsets.diff(), output_size=count
        )
        ordered, place = torch.sort(ids + self._row_start[bag // samples])
        bags, num_tiles = bag[place], triton.cdiv(count, TILE)
        sums = torch.empty((num_tiles, self._block), device=ids.device)
        constants = {"TILE": TILE, "BLOCK": self._block}
        if num_tiles > 1:
            _sum_tiles[(num_tiles - 1,)](
                ordered, bags, gradient, self._column_start, sums, count, samples, self._width, **constants
            )
        _update[(count,)](
            self.weights,
            self.squares,
            ordered,
            bags,
            gradient,
            self._row_start,
            self._weight_start,
            self._column_start,
            sums,
            count,
            samples,
            self._width,
            LEARNING_RATE,
            EPSILON,
            **constants,
        )
