"""Plans of a portfolio as placements, and what moves between two of them; each is worked out once."""

import json
from collections.abc import Mapping
from typing import Any

from api.schemas.studies.portfolio import PortfolioSpec
from api.services.studies.kinds.portfolio.moves import Lost, Move, replaced_move, worst_move
from api.specs.parse import parse_spec
from api.specs.plans.document import parse_form, to_placement
from api.specs.references.resolve import Library
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem


class PlannedMoves:
    """Knows plans by digest, which determines them, so that what it says of equal digests is equal."""

    def __init__(self, request: PortfolioSpec, library: Library) -> None:
        self._library, self._numbering = library, request.numbering
        self._lost: Lost = request.lost if request.lost_host is None else request.lost_host
        self._problems: dict[int, Problem] = {}
        self._placements: dict[str, Placement | None] = {}
        self._moves: dict[tuple[str, str], Move] = {}

    def problem(self, num_hosts: int, spec: Mapping[str, Any]) -> Problem:
        """Return the problem of a number of hosts; ``spec`` was planned before, so that it is valid."""
        if num_hosts not in self._problems:
            self._problems[num_hosts] = parse_spec(canonical_bytes(spec), self._library).problem
        return self._problems[num_hosts]

    def move(self, before: str, after: str, problem: Problem) -> Move | None:
        """Return what moves from a plan to another one, of a problem; ``None`` if a plan is gone."""
        key = before, after
        if key not in self._moves:
            old, new = self._placement(before, problem), self._placement(after, problem)
            if old is None or new is None:
                return None
            self._moves[key] = worst_move(
                problem.tables,
                problem.cluster,
                old,
                new,
                lost=self._lost,
                numbering=self._numbering,
            )
        return self._moves[key]

    def replaced(self, digest: str, problem: Problem) -> Move | None:
        """Return what a host that replaces another one reads under a plan; ``None`` if the plan is gone."""
        placement = self._placement(digest, problem)
        if placement is None:
            return None
        return replaced_move(problem.tables, problem.cluster, placement, lost=self._lost)

    def _placement(self, digest: str, problem: Problem) -> Placement | None:
        if digest not in self._placements:
            raw = None if self._library.find_plan is None else self._library.find_plan(digest)
            if raw is None:
                return None
            plan = parse_form(raw, json.loads(raw))
            self._placements[digest] = to_placement(plan, problem.cluster.device_tier)
        return self._placements[digest]
