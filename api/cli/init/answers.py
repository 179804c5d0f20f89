"""What ``init`` needs to know: each fact has an option, a question, a default and a unit."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from api.cli.errors import BadInput
from api.specs.drafts.draft import Table
from cost_models.text.read_number import finite_number, whole_number

_TABLE = re.compile(
    r"(?P<name>\S+?)[=\s]\s*(?P<rows>[0-9.]+[KMB]?)\s*[xX]\s*(?P<dim>[0-9]+)(?:[@\s]\s*(?P<ids>[0-9.]+))?"
)
_TABLE_FORM = "NAME=ROWSxCOLUMNS@IDS, such as user=10Mx64@1.0"
_THOUSANDS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9}


@dataclass(kw_only=True)
class Answers:
    """What is known so far; ``None`` and empty: not yet."""

    source: str | None = None
    name: str | None = None
    tables: list[str] = field(default_factory=list)  # as options have them
    batch_size_per_rank: int | None = None
    profile: str | None = None
    num_hosts: int | None = None
    ranks_per_host: int | None = None
    pooling_factors: list[str] = field(default_factory=list)  # as options have them
    optimizer: str | None = None
    changes: Sequence[str] = ()
    output: str | None = None

    def command(self) -> str:
        """Return the command line that goes on from here."""
        options: list[tuple[str, object]] = [
            ("--name", self.name),
            *(("--table", table) for table in self.tables),
            ("--batch-size-per-rank", self.batch_size_per_rank),
            ("--profile", self.profile),
            ("--num-hosts", self.num_hosts),
            ("--ranks-per-host", self.ranks_per_host),
            *(("--pooling-factor", factor) for factor in self.pooling_factors),
            ("--optimizer", self.optimizer),
            *(("--set", change) for change in self.changes),
            ("-o", self.output),
        ]
        words = [] if self.source is None else [self.source]
        words += [word for name, value in options if value is not None for word in (name, str(value))]
        return shlex.join(["shardplan", "init", *words])


def table_of(text: str) -> Table:
    """Return the table that an option or an answer states; raises ``BadInput`` with the form that is expected."""
    found = _TABLE.fullmatch(text.strip())
    rows = None if found is None else _count(found["rows"])
    ids = finite_number(found["ids"]) if found is not None and found["ids"] else None
    if found is None or rows is None or (found["ids"] and ids is None):
        raise BadInput(f"expected a table as {_TABLE_FORM}, not {text[:80]!r}")
    table: Table = {"name": found["name"], "num_embeddings": rows, "embedding_dim": int(found["dim"])}
    return table if ids is None else {**table, "pooling_factor": ids}


def _count(text: str) -> int | None:
    """Return the number of rows that a text such as 500000 or 1.5M is."""
    suffix = text[-1] if text[-1] in "KMB" else ""
    number = finite_number(text.removesuffix(suffix))
    if number is None or (not suffix and whole_number(text) is None):
        return None
    return round(number * _THOUSANDS[suffix])


def pooling_factors_of(texts: Sequence[str]) -> tuple[dict[str, float], float | None]:
    """Return ids per sample by feature or table, and that of all others; raises ``BadInput`` for what is no number."""
    by_name: dict[str, float] = {}
    default = None
    for text in texts:
        name, equals, number = text.rpartition("=")
        value = finite_number(number)
        if value is None or value < 0 or (equals and not name):
            raise BadInput(f"--pooling-factor takes IDS, or FEATURE=IDS, such as recent_items=20, not {text[:80]!r}")
        if equals:
            by_name[name] = value
        else:
            default = value
    return by_name, default
