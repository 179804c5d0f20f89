"""NVIDIA distributed-embeddings in numpy: its strategy, and what its ranks hold, exchange and look up.

Written from its source, without the exporter and the geometry that it uses. Names of classes, methods and fields that a
loader touches are those of ``dist_model_parallel``; bodies follow what it does, checks (``SetupFailed``) and failings
with it: bags without an id have no mean, lookups of variable length know no bounds, and inputs of fixed length are
exchanged before the others whatever their order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats

Bags = Sequence[Sequence[int]]
#: One input of one rank: an array of so many samples by so many ids, or bags of any length.
Input = NDArray[np.int64] | list[list[int]]


class SetupFailed(Exception):
    """It stops with an error."""


class Embedding:
    """An unbuilt layer."""

    def __init__(self, input_dim: int, output_dim: int, *, combiner: str | None = None) -> None:
        if input_dim <= 0 or output_dim <= 0:
            raise SetupFailed("both dimensions should be positive")
        self.config = {"input_dim": input_dim, "output_dim": output_dim, "combiner": combiner}

    def get_config(self) -> dict[str, Any]:
        return dict(self.config)


def elements(config: dict[str, Any]) -> int:
    size: int = config["input_dim"] * config["output_dim"]
    return size


def in_rising_order(keys: Sequence[int]) -> list[int]:
    """Places of the keys, lowest key first; of equal ones the first."""
    return sorted(range(len(keys)), key=lambda place: (keys[place], place))


@dataclass
class RankOfTables:
    """What the strategy says of the table-parallel tables of one rank."""

    tables: list[int]  # places in the group
    inputs: list[int]  # places in the inputs of the group
    variables: list[dict[str, Any]] = field(default_factory=list)
    members: list[list[int]] = field(default_factory=list)  # places in ``tables``, of each variable
    variable_of_input: list[int] = field(default_factory=list)
    offset_of_input: list[int] = field(default_factory=list)


class DistEmbeddingStrategy:
    """Groups, slices and ranks of tables, from thresholds; the three hooks can be overridden."""

    def __init__(
        self,
        embeddings: Sequence[Embedding],
        world_size: int,
        strategy: str = "basic",
        input_table_map: Sequence[int] | None = None,
        column_slice_threshold: int | None = None,
        row_slice_threshold: int | None = None,
        data_parallel_threshold: int | None = None,
    ) -> None:
        self.row_slice_threshold = row_slice_threshold
        self.data_parallel_threshold = data_parallel_threshold
        self.global_configs = [layer.get_config() for layer in embeddings]
        inputs = list(range(len(embeddings))) if input_table_map is None else list(input_table_map)
        self.table_groups = self.init_table_groups(self.global_configs)
        if sorted(number for group in self.table_groups for number in group) != list(range(len(embeddings))):
            raise SetupFailed("a table is in no group, or in two")
        self.input_groups = [[i for i, table in enumerate(inputs) if table in group] for group in self.table_groups]
        self.map_groups = [
            [group.index(inputs[i]) for i in of_group]
            for group, of_group in zip(self.table_groups, self.input_groups, strict=True)
        ]
        self.rev_group_ids = in_rising_order([i for of_group in self.input_groups for i in of_group])
        self.ranks: list[RankOfTables] = []
        self.sliced_out_ranges: list[list[int]] = []
        if self.table_groups[1]:
            self._place_tables(world_size, self.map_groups[1], column_slice_threshold, strategy)

    def init_table_groups(self, configs: list[dict[str, Any]]) -> list[list[int]]:
        groups: list[list[int]] = [[], [], []]
        for number, config in enumerate(configs):
            size = elements(config)
            if self.data_parallel_threshold and size <= self.data_parallel_threshold:
                groups[0].append(number)
            elif self.row_slice_threshold and size >= self.row_slice_threshold:
                groups[2].append(number)
            else:
                groups[1].append(number)
        return groups

    def maybe_slice_table_column(
        self, orig_config: dict[str, Any], column_slice_threshold: float | None, world_size: int
    ) -> list[dict[str, Any]]:
        size, pieces = float(elements(orig_config)), 1
        while column_slice_threshold is not None and size > column_slice_threshold:
            size, pieces = size / 2, pieces * 2
        pieces = min(pieces, world_size, orig_config["output_dim"])
        width, wider = divmod(orig_config["output_dim"], pieces)
        return [orig_config | {"output_dim": width + (1 if piece < wider else 0)} for piece in range(pieces)]

    def apply_strategy(self, mode: str, world_size: int, sliced_configs: list[list[dict[str, Any]]]) -> list[list[int]]:
        pairs = [(elements(piece), table) for table, pieces in enumerate(sliced_configs) for piece in pieces]
        if mode == "basic" or world_size == 1:
            return [[table for _, table in pairs[rank::world_size]] for rank in range(world_size)]
        pairs.sort(reverse=True)
        if mode == "memory_balanced":  # there and back again
            there = [pairs[rank :: 2 * world_size] for rank in range(world_size)]
            back = [pairs[2 * world_size - 1 - rank :: 2 * world_size] for rank in range(world_size)]
            return [[table for _, table in one + other] for one, other in zip(there, back, strict=True)]
        if mode != "memory_optimized":
            raise SetupFailed(f"Unsupported strategy {mode}")
        loads: list[tuple[int, list[int]]] = [(0, []) for _ in range(world_size)]
        for size, table in pairs:  # to the least loaded, whose place is then by load: ranks have no names
            load, held = loads[0]
            loads = sorted([(load + size, [*held, table]), *loads[1:]])
        return [held for _, held in loads]

    def _place_tables(self, world_size: int, inputs: list[int], threshold: float | None, mode: str) -> None:
        configs = [self.global_configs[number] for number in self.table_groups[1]]
        if threshold is None:
            sizes = sorted(map(elements, configs))
            while len(sizes) < world_size:
                threshold = sizes[-1] - 1
                sizes = sorted([*sizes[:-1], sizes[-1] // 2, sizes[-1] // 2])
        sliced = [self.maybe_slice_table_column(config, threshold, world_size) for config in configs]
        self.sliced_out_ranges = [
            [place, place + len(sliced[table])] for place, table in enumerate(inputs) if len(sliced[table]) > 1
        ]
        for tables in self.apply_strategy(mode, world_size, [list(pieces) for pieces in sliced]):
            self.ranks.append(self._rank(tables, sliced, inputs))
        self.widths = [rank.variables[number]["output_dim"] for rank in self.ranks for number in rank.variable_of_input]
        self.rev_tp_ids = in_rising_order([i for rank in self.ranks for i in rank.inputs])

    def _rank(self, tables: list[int], sliced: list[list[dict[str, Any]]], inputs: list[int]) -> RankOfTables:
        merged: dict[int, dict[str, Any]] = {}
        for table in tables:
            piece = sliced[table].pop(0)  # ranks in turn take the leftmost slice that is left
            if table not in merged:
                merged[table] = dict(piece)
                continue
            merged[table]["output_dim"] += piece["output_dim"]
            for out_range in self.sliced_out_ranges:
                if out_range[0] == table:  # an input compared with a table
                    out_range[1] -= 1
        places, of_table = list(merged), {table: place for place, table in enumerate(merged)}
        taken = [(i, of_table[table]) for table in places for i, looked_up in enumerate(inputs) if looked_up == table]
        rank = RankOfTables(tables=places, inputs=[i for i, _ in taken])
        where: dict[int, tuple[int, int]] = {}  # of each table: its variable, and its first row there
        for place, config in enumerate(merged.values()):
            for number, variable in enumerate(rank.variables):
                if all(variable[key] == config[key] for key in ("output_dim", "combiner")):
                    where[place] = number, variable["input_dim"]
                    variable["input_dim"] += config["input_dim"]
                    rank.members[number].append(place)
                    break
            else:
                where[place] = len(rank.variables), 0
                rank.variables.append(dict(config))
                rank.members.append([place])
        rank.variable_of_input = [where[place][0] for _, place in taken]
        rank.offset_of_input = [where[place][1] for _, place in taken]
        return rank


class DistributedEmbedding:
    """One rank of the layer. ``together`` runs all of them."""

    def __init__(
        self,
        embeddings: Sequence[Embedding],
        rank: int,
        world_size: int,
        input_table_map: Sequence[int] | None = None,
        strategy: type[DistEmbeddingStrategy] = DistEmbeddingStrategy,
    ) -> None:
        self.rank, self.world_size = rank, world_size
        self.strategy = strategy(embeddings, world_size, "basic", input_table_map)
        if not all(one.tables for one in self.strategy.ranks):
            raise SetupFailed("Not enough table after slicing to run on all worker.")
        self.dp: list[Floats] = []
        self.tp: list[Floats] = []
        self.row: list[Floats] = []
        self.row_offsets: list[int] = []

    def set_weights(self, weights: Sequence[Floats]) -> None:
        """Give every table its weights, of which the rank keeps what it holds."""
        groups = [[weights[number] for number in group] for group in self.strategy.table_groups]
        self.dp = groups[0]
        self.row = [np.array_split(one, self.world_size)[self.rank] for one in groups[2]]
        if not all(len(block) for block in self.row):
            raise SetupFailed("both dimensions should be positive")
        self.row_offsets = [
            -sum(len(block) for block in np.array_split(one, self.world_size)[: self.rank]) for one in groups[2]
        ]
        if not self.strategy.ranks:
            return
        mine = self.strategy.ranks[self.rank]
        parts = []
        for table in mine.tables:
            having = [number for number, rank in enumerate(self.strategy.ranks) if table in rank.tables]
            columns = np.array_split(np.arange(groups[1][table].shape[1]), len(having))[having.index(self.rank)]
            parts.append(groups[1][table][:, columns])
        self.tp = [np.concatenate([parts[place] for place in places]) for places in mine.members]
        for config, variable in zip(mine.variables, self.tp, strict=True):
            if variable.shape != (config["input_dim"], config["output_dim"]):
                raise SetupFailed("weights do not have the shape of the variable")


def together(workers: Sequence[DistributedEmbedding], inputs: Sequence[Sequence[Input]]) -> list[list[Floats]]:
    """Return the outputs of every rank, in the order of its inputs."""
    strategy, combiner = workers[0].strategy, [config["combiner"] for config in workers[0].strategy.global_configs]
    groups = [[[of_rank[i] for i in group] for of_rank in inputs] for group in strategy.input_groups]
    dp_group, tp_group, row_group = strategy.table_groups
    copied = [
        [
            lookup(worker.dp[table], one, combiner[dp_group[table]])
            for table, one in zip(strategy.map_groups[0], given, strict=True)
        ]
        for worker, given in zip(workers, groups[0], strict=True)
    ]
    parallel = table_parallel(workers, groups[1]) if tp_group else [[] for _ in workers]
    sliced: list[list[Floats]] = [[] for _ in workers]
    for place, table in enumerate(strategy.map_groups[2]):
        gathered = [of_rank[place] for of_rank in groups[2]]
        if not all(isinstance(one, np.ndarray) for one in gathered):
            raise SetupFailed("only tensors can be gathered")
        ids = np.concatenate(gathered)
        partial = [
            lookup(worker.row[table], ids + worker.row_offsets[table], combiner[row_group[table]]) for worker in workers
        ]
        for of_rank, part in zip(sliced, np.split(np.sum(partial, axis=0), len(workers)), strict=True):
            of_rank.append(part)
    outputs = [dp + tp + row for dp, tp, row in zip(copied, parallel, sliced, strict=True)]
    return [[of_rank[place] for place in strategy.rev_group_ids] for of_rank in outputs]


def table_parallel(workers: Sequence[DistributedEmbedding], inputs: Sequence[Sequence[Input]]) -> list[list[Floats]]:
    """Send ids to the ranks of their tables, look up, send pools back as one flat tensor."""
    strategy, num_ranks = workers[0].strategy, len(workers)
    to_send: list[list[Floats]] = []  # of each rank, to each rank
    for worker in workers:
        mine = strategy.ranks[worker.rank]
        if not mine.inputs:
            raise SetupFailed("nothing to concatenate on a rank without an input")
        received: list[Input] = [joined([of_rank[i] for of_rank in inputs]) for i in mine.inputs]
        received.sort(key=lambda one: not isinstance(one, np.ndarray))
        pools = [
            lookup(worker.tp[variable], shifted(one, offset), mine.variables[variable]["combiner"])
            for one, variable, offset in zip(received, mine.variable_of_input, mine.offset_of_input, strict=True)
        ]
        flat = np.concatenate([one.reshape(num_ranks, -1) for one in pools], axis=1)
        to_send.append(list(flat))
    answers = []
    for rank, given in enumerate(inputs):
        flat, samples = np.concatenate([sender[rank] for sender in to_send]), len(given[0])
        ends = np.cumsum([samples * width for width in strategy.widths])
        if ends[-1] != flat.size:
            raise SetupFailed("pools do not have the widths that were told")
        parts = [one.reshape(samples, -1) for one in np.split(flat, ends[:-1])]
        result = [parts[place] for place in strategy.rev_tp_ids]
        for start, end in strategy.sliced_out_ranges:
            result[start:end] = [np.concatenate(result[start:end], axis=1)]
        answers.append(result)
    return answers


def joined(parts: Sequence[Input]) -> Input:
    arrays = [one for one in parts if isinstance(one, np.ndarray)]
    if len(arrays) == len(parts):
        return np.concatenate(arrays)
    return [list(bag) for one in parts for bag in one]


def shifted(ids: Input, offset: int) -> Input:
    return ids + offset if isinstance(ids, np.ndarray) else [[row + offset for row in bag] for bag in ids]


def lookup(variable: Floats, ids: Input, combiner: str | None) -> Floats:
    """Look ids up on a GPU: zeros out of bounds where the number of ids is fixed, and anything where it is not."""
    if combiner is None:
        raise SetupFailed("a layer without combiner answers one row for each id")
    if isinstance(ids, np.ndarray):
        inside = (ids >= 0) & (ids < len(variable))
        rows = np.where(inside[..., None], variable[np.where(inside, ids, 0)], 0.0)
        pooled: Floats = rows.sum(axis=1) if combiner == "sum" else rows.mean(axis=1)
        return pooled
    flat = [row for bag in ids for row in bag]
    if any(not 0 <= row < len(variable) for row in flat):
        raise SetupFailed("reads beyond the variable")
    if len(flat) == len(ids):  # taken for one id in each bag
        return variable[flat]
    sums = np.stack([variable[bag].sum(axis=0) for bag in ids])
    if combiner == "sum":
        return sums
    with np.errstate(invalid="ignore"):
        return sums / np.array([[len(bag)] for bag in ids])


def unsharded(weights: Floats, combiner: str, bags: Bags) -> Floats:
    """What one table on one device answers for bags that are not empty."""
    pools = [weights[list(bag)].sum(axis=0) / (len(bag) if combiner == "mean" else 1) for bag in bags]
    return np.stack(pools)
