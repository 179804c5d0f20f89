"""Where the tables of ``init`` come from: a file, a Python model, options, or answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from api.cli.errors import BadInput
from api.cli.files import STDIN, read_bytes
from api.cli.init.answers import table_of
from api.specs.drafts.draft import Draft
from api.specs.drafts.registry import read_draft
from api.specs.input.json import is_spec, read_json
from api.specs.plans.registry import foreign_text, is_foreign


class Source(Protocol):
    """What is known of a model before it is asked for the rest."""

    @property
    def form(self) -> str:
        """What it is, for people."""

    @property
    def num_tables(self) -> int:
        """Tables of the model."""

    @property
    def facts(self) -> Draft | None:
        """What the source says of the job; ``None``: nothing."""

    @property
    def features_without_ids(self) -> Sequence[str]:
        """Features, and tables of one feature, without a number of ids per sample."""

    @property
    def has_all_optimizers(self) -> bool:
        """Whether every table has an optimizer."""

    def model(
        self, pooling_factors: Mapping[str, float], default: float | None, optimizer: str | None
    ) -> dict[str, object]:
        """Return ``model`` of a spec, but for the batch."""


@dataclass(frozen=True, slots=True)
class FromDraft:
    """Tables out of a file, or out of options and answers."""

    draft: Draft

    @property
    def form(self) -> str:
        return self.draft.form

    @property
    def num_tables(self) -> int:
        return len(self.draft.tables)

    @property
    def facts(self) -> Draft | None:
        return self.draft

    @property
    def features_without_ids(self) -> Sequence[str]:
        return self.draft.features_without_ids

    @property
    def has_all_optimizers(self) -> bool:
        return all("optimizer" in table for table in self.draft.tables)

    def model(
        self, pooling_factors: Mapping[str, float], default: float | None, optimizer: str | None
    ) -> dict[str, object]:
        tables = self.draft.spec_tables(pooling_factors, default)
        stated = {} if optimizer is None else {"optimizer": optimizer}
        return {"tables": [{**table, **({} if "optimizer" in table else stated)} for table in tables]}


def source_of_file(path: str) -> Source:
    """Read the tables of a file; a Python file, or ``MODULE:NAME``, is run for its model."""
    if is_python(path):
        from api.cli.init.python_model import model_of_python  # PyTorch, which most files do not need

        return model_of_python(path)
    raw = read_bytes(path)
    if is_spec(read_json(raw)):
        raise BadInput(f"{path} is a spec already: `shardplan plan {path}` plans it")
    return FromDraft(read_draft(raw))


def source_of_tables(tables: Sequence[str]) -> Source:
    """Return the tables that options or answers state."""
    return FromDraft(Draft(form="tables as stated", tables=tuple(map(table_of, tables))))


def holds_plan(path: str) -> bool:
    """Whether a file has a plan of another planner, from which a search can go on."""
    if path == STDIN or is_python(path):
        return False
    raw = read_bytes(path)
    return is_foreign(foreign_text(raw) or read_json(raw))


def is_python(path: str) -> bool:
    """Whether a source is Python: ``FILE.py``, ``FILE.py:NAME`` or ``package.module:NAME``."""
    place, _, name = path.partition(":")
    return place.endswith(".py") or (bool(name) and place.replace(".", "").isidentifier() and name.isidentifier())
