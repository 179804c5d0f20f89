"""An embedding collection of HugeCTR in numpy, built from an export's arguments of ``shard`` alone.

Written from HugeCTR's source, without the exporter and the geometry that it uses. It makes HugeCTR's own checks
(``SetupFailed``), splits tables by columns, deals out rows, and looks ids up as the GPUs do: every GPU sends each id to
the GPU that holds its row, that one pools what it has, and the sender adds the partial pools and divides means.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cost_models.arrays import Floats

Bags = Sequence[Sequence[int]]


class SetupFailed(Exception):
    """HugeCTR stops with an error while it builds the model."""


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise SetupFailed(message)


@dataclass
class SplitTable:
    """One column piece of a table, which HugeCTR makes a table of its own."""

    user_table: str
    first_column: int
    ev_size: int
    gpus: list[int]


class Collection:
    """What ``model.compile()`` makes of an ``EmbeddingCollectionConfig`` on so many GPUs."""

    def __init__(self, export: Mapping[str, Any], weights: Mapping[str, Floats]) -> None:
        export = json.loads(json.dumps(export))  # what a training script reads
        self.num_gpus = sum(len(node) for node in export["vvgpu"])
        self.tables = {table["name"]: table for table in export["tables"]}
        expect(len(export["shard_matrix"]) == self.num_gpus, "num_gpus is not match with shard matrix")
        groups = [(kind, [self._name_and_factor(entry) for entry in group]) for kind, group in export["shard_strategy"]]
        grouped = [name for _, group in groups for name, _ in group]
        expect(sorted(grouped) == sorted(self.tables), "a table is in no group, or in two")
        for held in export["shard_matrix"]:
            expect(set(held) <= set(self.tables), "no such name")
        dynamic = {name for name, table in self.tables.items() if table["max_vocabulary_size"] < 0}
        expect(not dynamic or all(kind == "mp" for kind, _ in groups), "vocabuary_size should > 0.")
        self.copied = {name for kind, group in groups if kind == "dp" for name, _ in group}
        self.pieces: list[SplitTable] = []
        for kind, group in groups:
            expect(kind in ("dp", "mp"), "table placement strategy is not match")
            for name, factor in group:
                self._split(name, factor, kind, export["shard_matrix"])
        self._check_compression(export["compression_strategy"], grouped)
        self.storage = [self._storage(gpu, weights) for gpu in range(self.num_gpus)]

    @staticmethod
    def _name_and_factor(entry: Any) -> tuple[str, int]:
        return (entry, 1) if isinstance(entry, str) else (entry[0], entry[1])

    def _split(self, name: str, factor: int, kind: str, shard_matrix: list[list[str]]) -> None:
        gpus = [gpu for gpu, held in enumerate(shard_matrix) if name in held]
        ev_size = self.tables[name]["ev_size"]
        if kind == "dp":
            expect(factor == 1, "dp table does not support column-wise sharding.")
            # A GPU that does not list the table makes no lookups of it.
            expect(len(gpus) == self.num_gpus, "a GPU makes no lookup in a table that all have")
        expect(ev_size % factor == 0, "ev_size can not be divided by column_wise_sharding_factor")
        expect(bool(gpus) and len(gpus) % factor == 0, "column-wise sharding gpu can not be divided.")
        per_piece = len(gpus) // factor
        for piece in range(factor):
            mine = [gpu for place, gpu in enumerate(gpus) if place // per_piece == piece]
            self.pieces.append(SplitTable(name, piece * (ev_size // factor), ev_size // factor, mine))

    def _check_compression(self, strategies: Mapping[str, list[str]], grouped: list[str]) -> None:
        expect(set(strategies) <= {"Reduction", "Unique"}, "no such compression")
        named = [name for names in strategies.values() for name in names]
        expect(len(named) == len(set(named)), "Duplicate table id in different CompressionStrategy")
        if strategies:
            expect(set(named) == set(grouped) - self.copied, "Table ids in CompressionStrategy does not match")

    def _storage(self, gpu: int, weights: Mapping[str, Floats]) -> dict[tuple[str, int], Floats]:
        """Rows of every piece on a GPU in the order of their ids, found again by dividing an id by the shards."""
        stored = {}
        for piece in self.pieces:
            columns = slice(piece.first_column, piece.first_column + piece.ev_size)
            if piece.user_table in self.copied:
                stored[piece.user_table, piece.first_column] = weights[piece.user_table][:, columns]
            elif gpu in piece.gpus:
                ids = np.arange(len(weights[piece.user_table]))
                mine = ids[ids % len(piece.gpus) == piece.gpus.index(gpu)]
                stored[piece.user_table, piece.first_column] = weights[piece.user_table][mine][:, columns]
        return stored

    def lookup(self, sender: int, name: str, bags: Bags) -> Floats:
        """Return what GPU ``sender`` gets for its samples of a lookup in a table."""
        parts = [self._lookup_piece(sender, piece, bags) for piece in self.pieces if piece.user_table == name]
        pools = np.concatenate(parts, axis=1)
        if self.tables[name]["combiner"] == "average":
            pools /= np.maximum([[len(bag)] for bag in bags], 1)
        return pools

    def _lookup_piece(self, sender: int, piece: SplitTable, bags: Bags) -> Floats:
        key = piece.user_table, piece.first_column
        gpus = [sender] if piece.user_table in self.copied else piece.gpus
        partial = np.zeros((len(gpus), len(bags), piece.ev_size))
        for sample, bag in enumerate(bags):
            for row in bag:
                shard = row % len(gpus)
                partial[shard, sample] += self.storage[gpus[shard]][key][row // len(gpus)]
        pools: Floats = partial.sum(axis=0)
        return pools

    def held_cells(self, gpu: int, name: str) -> set[tuple[int, int]]:
        """Return the (row, column) cells of a table on a GPU."""
        cells = set()
        for piece in self.pieces:
            if piece.user_table != name or gpu not in piece.gpus:
                continue
            step, first = (1, 0) if name in self.copied else (len(piece.gpus), piece.gpus.index(gpu))
            rows = range(first, self.tables[name]["max_vocabulary_size"], step)
            columns = range(piece.first_column, piece.first_column + piece.ev_size)
            cells |= {(row, column) for row in rows for column in columns}
        return cells


class DynamicTable:
    """The maps of one dynamic table on one GPU, which grow before a lookup (``dynamic_map::reserve``)."""

    def __init__(self, ev_size: int) -> None:
        self.ev_size, self.num_ids, self.next_capacity = ev_size, 0, 1048576
        self.maps: list[int] = []

    def lookup(self, num_keys: int, num_new: int) -> None:
        """Look keys up, of which some are new; as in HugeCTR there is room for all of them as if all were."""
        remaining, number = self.num_ids + num_keys, 0
        while remaining > 0:
            if number == len(self.maps):
                self.maps.append(self.next_capacity)
                self.next_capacity *= 2
            remaining -= 0.6 * self.maps[number] - 1e4
            number += 1
        self.num_ids += num_new

    def value_bytes(self) -> int:
        return sum(self.maps) * self.ev_size * 4

    def other_bytes(self) -> int:
        """Keys of 8 bytes and locks of 4 in pairs that are aligned to the next power of two, and three counters."""
        return sum(self.maps) * 16 + 3 * 128 * 8


def unsharded(weights: Floats, combiner: str, bags: Bags) -> Floats:
    """What one table on one device answers."""
    pools = np.stack([weights[list(bag)].sum(axis=0) if bag else np.zeros(weights.shape[1]) for bag in bags])
    if combiner == "average":
        pools /= np.maximum([[len(bag)] for bag in bags], 1)
    return pools
