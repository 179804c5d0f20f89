"""What some formats need beside a plan document, which has no more than determines training."""

from dataclasses import dataclass

from planner.domain.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFacts:
    """What is known beside a plan document."""

    problem: Problem | None = None  # what the plan was made for
    sparsecores_per_chip: int | None = None
