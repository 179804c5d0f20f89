"""The kinds of studies, and how a request becomes a study."""

from collections.abc import Callable, Mapping
from typing import Any

from api.schemas.base import StrictModel
from api.schemas.spec import SpecDocument
from api.schemas.studies.base import StudyBase
from api.schemas.studies.fleet import SmallestFleetSpec
from api.schemas.studies.jobs import JobsSpec
from api.schemas.studies.portfolio import PortfolioSpec
from api.schemas.studies.scenarios import ScenariosSpec
from api.schemas.studies.sweep import SweepSpec
from api.services.studies.kinds.fleet import SmallestFleet
from api.services.studies.kinds.jobs import Jobs
from api.services.studies.kinds.portfolio.portfolio import Portfolio
from api.services.studies.kinds.robust.study import Robust
from api.services.studies.kinds.sweep import Sweep
from api.services.studies.rules.base import Study
from api.specs.input.json import RejectedDocument, check_json, parse_document, read_json
from api.specs.input.known_names import names_hint
from api.specs.references.resolve import PACKAGE, Library
from planner.errors import Issue

_KINDS: Mapping[str, tuple[type[StudyBase], Callable[[Any, Library], Study]]] = {
    "sweep": (SweepSpec, lambda request, _: Sweep(request)),
    "smallest_fleet": (SmallestFleetSpec, lambda request, _: SmallestFleet(request)),
    "jobs": (JobsSpec, lambda request, _: Jobs(request)),
    "portfolio": (PortfolioSpec, Portfolio),
    "scenarios": (ScenariosSpec, lambda request, _: Robust(request)),
}
KINDS = tuple(_KINDS)


class _Fields(StrictModel):
    """All fields that a request may have, at any depth."""

    sweep: SweepSpec
    smallest_fleet: SmallestFleetSpec
    jobs: JobsSpec
    portfolio: PortfolioSpec
    scenarios: ScenariosSpec
    spec: SpecDocument


def parse_study(raw: bytes) -> StudyBase:
    """Check the form of a request; of its spec, that it is an object.

    Raises
    ------
    InvalidProblem
        With every rule of the form that is broken.
    """
    check_json(raw, _Fields)
    content = read_json(raw)
    kind = content.get("kind") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        message = "the kind of the study is missing" if kind is None else "there is no such kind of study"
        hint = names_hint(str(kind), KINDS)
        raise RejectedDocument([Issue(code="invalid-value", pointer="/kind", message=message, hint=hint)])
    return parse_document(raw, _KINDS[kind][0])


def study_of(request: StudyBase, library: Library = PACKAGE) -> Study:
    """Return the study that a request asks for; raises ``InvalidProblem`` if it can have no points.

    ``library`` has the plans of its points, which determine what some studies do next.
    """
    return _KINDS[request.kind][1](request, library)
