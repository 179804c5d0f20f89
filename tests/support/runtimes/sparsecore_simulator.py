"""The SparseCores of a job in numpy, built from an export as a training script for jax-tpu-embedding would be.

Written from the library's source, without the exporter and the modules that it uses: stacks are made and checked as
``stack_tables`` does, tables are padded, dealt out and turned as ``stack_and_shard_tables`` does, and ids are grouped
into partitions, counted once per sample and dropped as the preprocessing of inputs does.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cost_models.arrays import Floats

Bags = Sequence[Sequence[int]]

DEFAULT_LIMIT = 256


class SetupFailed(Exception):
    """The library stops with an error before it trains."""


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise SetupFailed(message)


def next_multiple(value: int, multiple: int) -> int:
    return ((value + multiple - 1) // multiple) * multiple


@dataclass
class Setting:
    """``TableSettingInStack`` of a table."""

    stack: str
    row_offset: int
    rotation: int


@dataclass
class Counted:
    """What the preprocessing of one batch says of a stack."""

    max_ids: int = 0
    max_unique_ids: int = 0
    dropped: int = 0


class Job:
    """Tables as a script declares them, stacked and dealt out."""

    def __init__(self, export: Mapping[str, Any], weights: Mapping[str, Floats]) -> None:
        export = json.loads(json.dumps(export))  # what a training script reads
        self.per_device = export["num_sc_per_device"]
        expect(self.per_device in (2, 4), "Invalid num_sc_per_device")
        self.num_cores = export["global_device_count"] * self.per_device
        expect(self.num_cores & (self.num_cores - 1) == 0, "num_scs must be a power of two")
        self.tables = {table["name"]: table for table in export["tables"]}
        self.settings: dict[str, Setting] = {}
        self.limits: dict[str, tuple[int, int]] = {}
        self.memory: dict[str, Floats] = {}  # of each stack, (cores, rows of a core, columns)
        for stack in export["stacks"]:
            self._stack(stack, weights)
        expect(set(self.settings) == set(self.tables), "a table is in no stack")

    def _stack(self, stack: Mapping[str, Any], weights: Mapping[str, Floats]) -> None:
        names = stack["tables"]
        declared = [self.tables[name] for name in names]
        expect(not set(names) & set(self.settings), "Table is already stacked")
        expect(stack["name"] not in self.memory, "stack name is already used")
        for what in ("optimizer", "combiner"):
            expect(len({table[what] for table in declared}) == 1, f"Tables have different {what}s")
        dim = max(next_multiple(table["embedding_dim"], 8) for table in declared)
        expect(all(next_multiple(table["embedding_dim"], 8) == dim for table in declared), "Excess padding")
        given = stack["max_ids_per_partition"], stack["max_unique_ids_per_partition"]
        self.limits[stack["name"]] = given if None not in given else (DEFAULT_LIMIT, DEFAULT_LIMIT)
        parts, offset, rotation = [], 0, 0
        for table in declared:
            rows = next_multiple(table["vocabulary_size"], 8 * self.num_cores) // self.num_cores
            self.settings[table["name"]] = Setting(stack["name"], offset, rotation)
            parts.append(np.roll(self._distributed(weights[table["name"]], rows, dim), rotation, axis=0))
            offset += rows
            rotation = (rotation + stack["rotation"]) % self.num_cores
        self.memory[stack["name"]] = np.concatenate(parts, axis=1)
        expect(offset * self.num_cores <= 2**31 - 1, "numbers of rows overflow")

    def _distributed(self, weights: Floats, rows_per_core: int, dim: int) -> Floats:
        padded = np.full((rows_per_core * self.num_cores, dim), np.nan)
        padded[: weights.shape[0], : weights.shape[1]] = weights
        return padded.reshape(-1, self.num_cores, dim).swapaxes(0, 1)

    def core_and_row(self, name: str, row: int) -> tuple[int, int]:
        """Return where an id of a table is sent: the last bits of its number in the stack, and the rest of it."""
        setting, mask = self.settings[name], self.num_cores - 1
        number = ((row + setting.rotation) & mask) + (row & ~mask) + setting.row_offset * self.num_cores
        return number & mask, number // self.num_cores

    def lookup(self, name: str, bags: Bags) -> Floats:
        """Return the pools of some samples of a table."""
        table, setting = self.tables[name], self.settings[name]
        pools = np.zeros((len(bags), self.memory[setting.stack].shape[2]))
        for sample, bag in enumerate(bags):
            gain = 1 / len(bag) if table["combiner"] == "mean" and bag else 1.0
            for row in bag:
                pools[sample] += gain * self.memory[setting.stack][self.core_and_row(name, row)]
        return pools[:, : table["embedding_dim"]]

    def held_rows(self, chip: int, name: str, chips: int) -> set[int]:
        """Return the rows of a table on a chip."""
        per_chip = self.num_cores // chips
        rows = range(self.tables[name]["vocabulary_size"])
        return {row for row in rows if self.core_and_row(name, row)[0] // per_chip == chip}

    def preprocess(self, features: Sequence[tuple[str, Bags]]) -> dict[str, Counted]:
        """Group the ids of a global batch, feature by feature: (table, bags of all samples)."""
        partitions: dict[str, dict[tuple[int, int], dict[int, set[tuple[int, int]]]]] = defaultdict(dict)
        for feature, (name, bags) in enumerate(features):
            share = len(bags) // self.num_cores
            expect(share * self.num_cores == len(bags), "samples are not split evenly")
            for sample, bag in enumerate(bags):
                for row in bag:
                    core, local = self.core_and_row(name, row)
                    found = partitions[self.settings[name].stack].setdefault((sample // share, core), {})
                    found.setdefault(local, set()).add((feature, sample))
        return {stack: self._counted(stack, found) for stack, found in partitions.items()}

    def _counted(self, stack: str, found: Mapping[tuple[int, int], Mapping[int, set[tuple[int, int]]]]) -> Counted:
        max_ids, max_unique = self.limits[stack]
        counted = Counted()
        for by_row in found.values():
            counted.max_ids = max(counted.max_ids, sum(map(len, by_row.values())))
            counted.max_unique_ids = max(counted.max_unique_ids, len(by_row))
            preserved = preserved_unique = 0
            for _, samples in sorted(by_row.items()):
                fits = len(samples) if preserved_unique < max_unique else 0
                taken = min(fits, max_ids - preserved)
                preserved += taken
                preserved_unique += taken > 0
                counted.dropped += len(samples) - taken
        return counted


def unsharded(weights: Floats, combiner: str, bags: Bags) -> Floats:
    """What one table on one device answers."""
    pools = np.stack([weights[list(bag)].sum(axis=0) if bag else np.zeros(weights.shape[1]) for bag in bags])
    return pools / np.maximum([[len(bag)] for bag in bags], 1) if combiner == "mean" else pools
