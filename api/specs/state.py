"""A spec on its way from bytes to a planning problem: what the stages of its reading hand on."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from api.schemas.spec import SpecDocument
from api.schemas.table import TableSpec
from api.specs.references.cost_model import ChosenModel
from api.specs.references.plans import OfCheckpoint, Previous
from api.specs.references.referenced_plan import ReferencedPlan
from cost_models.hardware.hardware import Hardware
from planner.domain.plan.plan import Assumption
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.domain.problem.table_names import unique_names
from planner.errors import Issue

GroupKind = Literal["same_rank", "apart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Originals:
    """Where tables, groups and objectives of a spec stand in the document as it was sent, with some left out."""

    tables: Sequence[int]
    groups: Mapping[GroupKind, Sequence[int]]
    objectives: Sequence[int] = ()
    #: of all tables as they were sent, with the module's path if several modules have a name; None if it cannot be read
    table_names: Sequence[str | None]
    has_all_groups: bool = True
    has_all_objectives: bool = True

    @classmethod
    def of(cls, spec: SpecDocument) -> "Originals":
        """Return those of a spec that was read as a whole."""
        return cls(
            tables=range(len(spec.model.tables)),
            groups={
                "same_rank": range(len(spec.constraints.same_rank)),
                "apart": range(len(spec.constraints.apart)),
            },
            objectives=range(len(spec.objectives or ())),
            table_names=unique_names([(table.module_path, table.name) for table in spec.model.tables]),
        )

    def repeated_names(self) -> frozenset[str]:
        """Return the names that do not say which table is meant."""
        counts = Counter(name for name in self.table_names if name is not None)
        return frozenset(name for name, count in counts.items() if count > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecState:
    """What is known of a spec after a stage; ``None`` stands for what an issue keeps from being known."""

    spec: SpecDocument
    originals: Originals
    # of resolve_references, which also puts access statistics in the place of their digests
    hardware: Hardware | None = None
    model: ChosenModel | None = None
    stated_cost_model: str | None = None  # the spec's own, if another one was asked for
    previous: Previous | None = None
    of_checkpoint: OfCheckpoint | None = None
    warm_start: ReferencedPlan | None = None
    statistics: tuple[Assumption, ...] = ()  # which were used
    statistics_warnings: tuple[Issue, ...] = ()
    # of to_domain
    cluster: Cluster | None = None
    tables: Mapping[str, Table] = field(default_factory=dict)  # by pointer; those without issues
    problem: Problem | None = None

    @property
    def rank_fields(self) -> tuple[str, ...]:
        """Pointers to the fields that decide how many ranks there are."""
        fields = ("/hardware/num_hosts", "/hardware/ranks_per_host")
        return fields if self.spec.hardware.ranks_per_host is not None else (*fields, "/hardware/profile")

    @property
    def ranks_per_host(self) -> int:
        """Ranks of a host as the spec or the profile has them; 0 if neither is known."""
        return self.spec.hardware.ranks_per_host or (self.hardware.ranks_per_host if self.hardware else 0)

    @property
    def num_ranks(self) -> int:
        """Ranks of all hosts; 0 if they are not known."""
        return self.spec.hardware.num_hosts * self.ranks_per_host

    def table_name(self, pointer: str, table: TableSpec) -> str:
        """Return the name of a table that no other has; its own if the path of its module cannot be read."""
        return self.originals.table_names[int(pointer.rsplit("/", 1)[1])] or table.name

    def written_tables(self) -> Iterator[tuple[str, TableSpec]]:
        """Yield the pointer of each table, and the table as the spec has it."""
        for number, table in zip(self.originals.tables, self.spec.model.tables, strict=True):
            yield f"/model/tables/{number}", table

    def groups(self, kind: GroupKind) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of each group of tables, and the names in it."""
        yield from zip(self.originals.groups[kind], getattr(self.spec.constraints, kind), strict=True)

    def group_indices(
        self, kind: GroupKind, names: Sequence[str], *, is_partial: bool
    ) -> Iterator[tuple[int, frozenset[int]]]:
        """Yield the number of each group, and the indices of its tables in ``names``; a part of these may lack some."""
        repeated = self.originals.repeated_names()
        index_of = {name: index for index, name in enumerate(names) if name not in repeated}
        for number, group in self.groups(kind):
            yield number, frozenset(index_of[name] for name in group if name in index_of or not is_partial)
