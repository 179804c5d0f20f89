"""Work of a study that is no solve: its plans in several specs, and a search for one plan of all of them.

Evaluating a plan takes a fraction of a second, and a search over all specs together has no spec of its own that a solve
could be made of. What comes of it is the outcome of a point like any other, so that studies go on from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api.execution.processes.scenarios import SearchTogether


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Plans and the specs that each of them is evaluated under."""

    specs: Mapping[str, Mapping[str, Any]]  # by label, all of the same tables and ranks
    plans: Mapping[str, str]  # digests by the names of the plans
    search: SearchTogether | None = None
    #: by label of a spec: the plan that is moved away from, and the one that is moved to
    moves: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What came of it."""

    seconds: Mapping[str, Mapping[str, float]]  # step by plan and spec; none where the plan is none of the spec
    issues: Mapping[str, Mapping[str, str]]  # why a plan must not be used under a spec
    moves: Mapping[str, Mapping[str, float | None]]  # moved_bytes and seconds by spec
    pins: Mapping[str, Any] | None = None  # constraints.pinned of every table, of the plan that was searched for
    bound: float = 0.0  # no plan's worst spec is shorter, in the unit of the search; 0 where that is not known
    detail: str = ""  # why the search has no plan
