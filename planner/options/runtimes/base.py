"""What a training runtime executes correctly: the legality of options and of finished plans."""

from typing import Protocol

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue


class Runtime(Protocol):
    """The rule set of one runtime.

    ``kernels``, ``scheme_issue`` and ``needs_row_wise_module`` shape the options;
    ``check`` looks at the geometry of a finished placement alone and shares no code with
    the options, so that an error on one side is caught by the other. Every runtime but
    ``generic`` lists the schemes that it has, and rejects new ones until it lists them.
    """

    @property
    def name(self) -> str:
        """The name used in specs."""
        ...

    @property
    def max_columns(self) -> int:
        """Widest shard that the kernels are known to read right."""
        ...

    @property
    def row_schemes(self) -> frozenset[Scheme]:
        """Schemes that count as "cut by rows" for ``needs_row_wise_module``."""
        ...

    @property
    def splits_off_hot_rows(self) -> bool:
        """Whether a table's most used rows may lie in another tier than the rest, once rows are numbered by use."""
        ...

    @property
    def supports_scm(self) -> bool:
        """Whether kernels that read the host's memory can read storage-class memory."""
        ...

    @property
    def device_families(self) -> frozenset[str] | None:
        """Families of hardware profiles that it runs on; ``None`` for any."""
        ...

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """Return the kernels that run a scheme of a table, among those offered, fastest first."""
        ...

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why the runtime would reject a scheme of a table or train it wrongly, or ``None``."""
        ...

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """Return whether the scheme is right only if every table of the module is cut by rows."""
        ...

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Return everything in a placement that the runtime would not train correctly."""
        ...
