"""Reads the text that TorchRec's planner prints of its plan (``EmbeddingStats``), whatever stands around it in a log.

Two tables are read by the names of their columns, which releases change and add: one line for each rank, and, under
``Parameter Info`` (printed with ``debug=True``, the default), one for each table. Cells are apart by two spaces or
more. Sizes are in units of 2^30 bytes, whatever the print-out calls them.

References
----------
meta-pytorch/torchrec, ``torchrec/distributed/planner/stats.py``: two storages (HBM, DDR) until 1.5, three (with SSD)
from 1.6 on; ``shard_estimators.py``: from 1.7 on an empty bag has no output row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from api.specs.input.json import RejectedDocument
from cost_models.text.launcher_lines import log_lines
from planner.errors import Issue

TITLE = "--- Planner Statistics ---"
_GIB = 2**30
_CELLS = re.compile(r"\s{2,}")
_MOST_RANKS_OF_TABLE = 1 << 20
#: A print-out begins and ends with a line of this many # or more.
_LEAST_RULE = 10
#: Of a log; a print-out has one for each table and rank, and some fifty more.
_MOST_LINES = 1_000_000
_RANK_COLUMNS = ("Rank", "HBM (GB)")
_TABLE_COLUMNS = ("FQN", "Sharding", "Compute Kernel", "Cache Load Factor", "Emb Dim (CW Dim)", "Hash Size", "Ranks")
_HINT = "give the whole print-out, as EmbeddingStats logs it with debug=True"
_MAX_ISSUES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTable:
    """One line of ``Parameter Info``."""

    line: int  # of the log, from 1
    path: str  # of the module, and the name
    sharding: str  # abbreviated
    kernel: str
    load_factor: float | None
    num_rows: int
    num_columns: int
    piece_columns: int | None  # of a table that is cut by columns
    ranks: tuple[int, ...]  # in rising order, one for each shard
    sum_pooling_factor: float | None  # ids per sample of all features; None: not printed
    num_features: int  # 1 if not printed
    is_sequence: bool
    is_weighted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedPlan:
    """What a print-out says of its plan."""

    tables: tuple[PrintedTable, ...]
    rank_hbm_bytes: tuple[float, ...]
    rounding_bytes: float  # of the above
    shared_hbm_bytes: float | None  # of the dense part and the ids of a batch, in each of the above; None: not printed
    has_two_storages: bool
    batch_size: int | None  # samples of a rank; None: not printed


def read_printed_plan(text: str) -> PrintedPlan:
    """Read a print-out out of a log.

    Raises
    ------
    RejectedDocument
        There is no whole print-out, or several of different plans; or a line cannot be read.
    """
    lines = _print_out(text)
    ranks = list(_rows(lines, _RANK_COLUMNS, "the table of ranks"))
    tables = list(_rows(lines, _TABLE_COLUMNS, "Parameter Info"))
    issues: list[Issue] = []
    hbm: list[float] = []
    digits = 0
    for number, row in ranks:
        found = re.fullmatch(r"([0-9]{1,9})(?:\.([0-9]{1,9}))? \(.*\)", row["HBM (GB)"])
        if found is None or row["Rank"] != str(len(hbm)):
            raise _rejected(f"line {number}: expected rank {len(hbm)} with its HBM, such as 99.737 (72%)")
        digits = max(digits, len(found[2] or ""))
        hbm.append(float(f"{found[1]}.{found[2] or 0}") * _GIB)
    printed = []
    for number, row in tables:
        try:
            printed.append(_table(number, row))
        except ValueError as error:
            issues.append(_issue(f"line {number}, {row['FQN'][:100]}: {error}"))
    if issues:
        raise RejectedDocument(issues[:_MAX_ISSUES], len(issues))
    shared = [_shared(lines, name) for name in ("Dense Storage (per rank):", "KJT Storage (per rank):")]
    known = [one for one in shared if one is not None]
    return PrintedPlan(
        tables=tuple(printed),
        rank_hbm_bytes=tuple(hbm),
        rounding_bytes=0.5 * 10.0**-digits * (1 + len(known)) * _GIB,
        shared_hbm_bytes=sum(known) * _GIB if len(known) == len(shared) else None,
        has_two_storages="Storage (HBM, DDR)" in tables[0][1],
        batch_size=_batch_size(lines),
    )


def _print_out(text: str) -> list[tuple[int, str]]:
    """Return the numbered lines of the one print-out in a log, without what stands around their text."""
    if text.count("\n") > _MOST_LINES:
        raise _rejected(f"the log has more than {_MOST_LINES:,} lines", "cut the print-out out of it")
    by_tag: dict[str, list[tuple[int, str]]] = {}
    found: list[list[tuple[int, str]]] = []
    for number, tag, line in log_lines(text):
        mark = line.find("#")
        if mark < 0:
            continue
        content = line[mark:].strip("#").strip()
        if TITLE in content:
            by_tag[tag] = []
            found.append(by_tag[tag])
        elif set(line[mark:]) == {"#"} and len(line[mark:]) >= _LEAST_RULE:
            by_tag.pop(tag, None)
        if tag in by_tag:
            by_tag[tag].append((number, content))
    different = {tuple(content for _, content in lines): lines for lines in found}
    if len(different) > 1:
        starts = ", ".join(str(lines[0][0]) for lines in different.values())
        raise _rejected(
            f"the log has {len(different)} print-outs of different plans, at lines {starts}", "keep one of them"
        )
    if not found:
        raise _rejected(f'no line is "{TITLE}"')
    return found[0]


def _rows(lines: list[tuple[int, str]], columns: tuple[str, ...], what: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the lines of the table that has these columns, each by the names of all its columns."""
    place = next((at for at, (_, line) in enumerate(lines) if _CELLS.split(line)[0] == columns[0]), None)
    if place is None:
        raise _rejected(f"the print-out lacks {what}")
    head = _CELLS.split(lines[place][1])
    missing = [name for name in columns if name not in head]
    if missing:
        raise _rejected(f"line {lines[place][0]}: {what} has no column {missing[0]}")
    num_rows = 0
    for number, line in lines[place + 1 :]:
        if not line:
            break
        if set(line) <= set("- "):
            continue
        cells = _CELLS.split(line)
        if len(cells) != len(head):
            raise _rejected(f"line {number}: {len(cells)} cells, and {what} has {len(head)} columns")
        num_rows += 1
        yield number, dict(zip(head, cells, strict=True))
    if not num_rows:
        raise _rejected(f"{what} is empty: the planner found no plan, or the log was cut")


def _table(number: int, row: dict[str, str]) -> PrintedTable:
    """Return a line of ``Parameter Info``; raises ``ValueError`` with what cannot be read."""
    columns = re.fullmatch(r"([0-9]{1,9})(?: \(([0-9]{1,9})\))?", row["Emb Dim (CW Dim)"])
    if columns is None:
        raise ValueError(f'expected columns such as 128 or 256 (128), not "{row["Emb Dim (CW Dim)"][:30]}"')
    if not re.fullmatch(r"[0-9]{1,15}", row["Hash Size"]):
        raise ValueError(f'expected a number of rows, not "{row["Hash Size"][:30]}"')
    factor = row["Cache Load Factor"]
    if factor != "None" and not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,20})?(e-[0-9]{1,3})?", factor):
        raise ValueError(f'expected a load factor, not "{factor[:30]}"')
    return PrintedTable(
        line=number,
        path=row["FQN"],
        sharding=row["Sharding"],
        kernel=row["Compute Kernel"],
        load_factor=None if factor == "None" else float(factor),
        num_rows=int(row["Hash Size"]),
        num_columns=int(columns[1]),
        piece_columns=None if columns[2] is None else int(columns[2]),
        ranks=_ranks(row["Ranks"]),
        sum_pooling_factor=_printed_number(row, "Sum Pooling Factor"),
        num_features=int(_printed_number(row, "Features") or 1),
        is_sequence=row.get("Output") == "sequence",
        is_weighted=row.get("Weighted") == "weighted",
    )


def _printed_number(row: dict[str, str], name: str) -> float | None:
    """Return the number of a column that not every release prints."""
    text = row.get(name, "")
    return float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) else None


def _ranks(text: str) -> tuple[int, ...]:
    """``"0-3"`` or ``"1,1,7"``: the ranks of the shards in rising order."""
    if found := re.fullmatch(r"([0-9]{1,7})-([0-9]{1,7})", text):
        first, last = int(found[1]), int(found[2])
        if first < last < first + _MOST_RANKS_OF_TABLE:
            return tuple(range(first, last + 1))
    elif re.fullmatch(r"[0-9]{1,7}(,[0-9]{1,7})*", text):
        return tuple(sorted(int(word) for word in text.split(",")))
    raise ValueError(f'expected ranks such as 3, 0-7 or 1,1,7, not "{text[:30]}"')


def _shared(lines: list[tuple[int, str]], name: str) -> float | None:
    """Return the HBM that the line after a heading has; ``None`` if it is not printed."""
    for (_, line), (_, after) in pairwise(lines):
        if line == name and (found := re.match(r"HBM: ([0-9]{1,9}(?:\.[0-9]{1,9})?) GB", after)):
            return float(found[1])
    return None


def _batch_size(lines: list[tuple[int, str]]) -> int | None:
    """Return the samples of a rank, which a line of its own has."""
    found = [match for _, line in lines if (match := re.match(r"Batch Size: ([1-9][0-9]{0,8})\b", line))]
    return int(found[0][1]) if found else None


def _issue(message: str, hint: str = _HINT) -> Issue:
    return Issue(code="unreadable-print-out", pointer="", message=message, hint=hint)


def _rejected(message: str, hint: str = _HINT) -> RejectedDocument:
    return RejectedDocument([_issue(message, hint)])
