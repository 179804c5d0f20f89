"""Which embedding launches are measured, in which order: a balanced random design that may stop anywhere.

Launches come in rounds of six: two single tables, and twice a fused group of 2 to 15 tables and one table of that
group alone, with the ids that it had in the group. Every tenth round measures the first table and the first group of
all once more, which shows how much times vary over the run. A round is a task: it never lies on both sides of a split,
and the repeats belong to the first round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from api.cli.measuring.sequence import log_between, one_of, point

DataType = Literal["fp32", "fp16"]
LAUNCHES_PER_ROUND = 6
_SINGLES, _GROUPS_PER_ROUND = 2, 2
_ROUNDS_PER_REPEAT, _REPEATED = 10, (0, _SINGLES)
MOST_TABLES = 15
COLUMNS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_LEAST_ROWS, _MOST_ROWS = 100, 10_000_000
_LEAST_BATCH, _MOST_BATCH = 64, 65_536
_LEAST_POOLING, _MOST_POOLING = 0.1, 128.0
_MOST_ALPHA = 1.4
#: At least the tables of a group, and without a factor in common with the bases of the sequences: the tables of every
#: group then lie anywhere on every axis.
_TABLE_STRIDE = 17
#: Streams of the sequences of points: groups, tables on their own, tables in groups.
_GROUPS, _SINGLE_TABLES, _GROUP_TABLES = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDesign:
    """One table and how it is looked up."""

    name: str
    rows: int
    columns: int
    pooling: float  # mean ids of a sample
    alpha: float  # Zipf exponent of the ids
    seed: int  # of its ids


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupLaunch:
    """Tables that are looked up by one fused launch."""

    task: str
    batch: int  # samples
    data_type: DataType
    tables: tuple[TableDesign, ...]

    @property
    def element_bytes(self) -> int:
        """Stored bytes of one weight."""
        return 2 if self.data_type == "fp16" else 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupLimits:
    """What one launch may hold and do."""

    lookups: float
    weight_bytes: float


def lookup_launch(index: int, seed: int, limits: LookupLimits) -> LookupLaunch:
    """Return launch ``index`` of the design of a seed."""
    round_, place = divmod(index, LAUNCHES_PER_ROUND)
    if place in _REPEATED and round_ % _ROUNDS_PER_REPEAT == 0:
        round_ = 0
    task = f"seed{seed}-round{round_}"
    if place < _SINGLES:
        return _single(_SINGLES * round_ + place, seed, task, limits)
    of_round, alone = divmod(place - _SINGLES, 2)
    number = _GROUPS_PER_ROUND * round_ + of_round
    group = _group(number, seed, task, limits)
    if not alone:
        return group
    table = group.tables[number % len(group.tables)]
    return LookupLaunch(task=task, batch=group.batch, data_type=group.data_type, tables=(table,))


def _single(number: int, seed: int, task: str, limits: LookupLimits) -> LookupLaunch:
    *of_table, of_batch, of_type = point(number, 6, seed, _SINGLE_TABLES)
    batch = _batch(of_batch, limits.lookups)
    data_type: DataType = "fp32" if of_type < 0.6 else "fp16"
    name, id_seed = f"{task}-t{number % _SINGLES}", _id_seed(seed, _SINGLE_TABLES, number)
    table = _table(of_table, name, id_seed, batch, limits.lookups, limits.weight_bytes)
    return LookupLaunch(task=task, batch=batch, data_type=data_type, tables=(table,))


def _group(number: int, seed: int, task: str, limits: LookupLimits) -> LookupLaunch:
    of_size, of_batch, of_type, of_lookups = point(number, 4, seed, _GROUPS)
    size = 2 + int(of_size * (MOST_TABLES - 1))
    # Groups share what one launch may do, and not all of them use it up.
    lookups = log_between(of_lookups, min(limits.lookups, 1024 * size), limits.lookups) / size
    batch = _batch(of_batch, lookups)
    tables = []
    for place in range(size):
        table = _TABLE_STRIDE * number + place
        shares = point(table, 4, seed, _GROUP_TABLES)
        name, id_seed = f"{task}-g{number % _GROUPS_PER_ROUND}-{place}", _id_seed(seed, _GROUP_TABLES, table)
        tables.append(_table(shares, name, id_seed, batch, lookups, limits.weight_bytes / size))
    data_type: DataType = "fp32" if of_type < 0.6 else "fp16"
    return LookupLaunch(task=task, batch=batch, data_type=data_type, tables=tuple(tables))


def _id_seed(seed: int, stream: int, number: int) -> int:
    return (seed * 4 + stream) * 2**32 + number


def _batch(share: float, lookups: float) -> int:
    most = max(min(float(_MOST_BATCH), lookups / _LEAST_POOLING), _LEAST_BATCH)
    return round(log_between(share, _LEAST_BATCH, most))


def _table(
    shares: Sequence[float], name: str, id_seed: int, batch: int, lookups: float, weight_bytes: float
) -> TableDesign:
    of_rows, of_columns, of_pooling, of_alpha = shares
    columns = one_of(of_columns, COLUMNS)
    most_rows = min(float(_MOST_ROWS), weight_bytes / (4 * columns))
    pooling = log_between(of_pooling, _LEAST_POOLING, min(_MOST_POOLING, lookups / batch))
    return TableDesign(
        name=name,
        rows=round(log_between(of_rows, _LEAST_ROWS, most_rows)),
        columns=columns,
        pooling=float(f"{pooling:.3g}"),
        alpha=round(of_alpha * _MOST_ALPHA, 2),
        seed=id_seed,
    )
