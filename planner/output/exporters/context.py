"""What every export needs of a plan document, and the error of one that cannot be written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cost_models.errors import UnknownProfile
from cost_models.hardware.profiles_loader import load_profile
from planner.domain.formats.canonical_json import plan_digest
from planner.domain.problem.problem import Problem
from planner.options.runtimes.registry import RUNTIMES
from planner.output.plan_document import PlanDocument

_MAX_ISSUES = 20


class UnexportablePlan(ValueError):
    """A plan document that cannot be written for a runtime."""

    code = "unexportable-plan"


def checked_digest(document: PlanDocument) -> str:
    """Return the digest of a plan document's content.

    Raises
    ------
    UnexportablePlan
        The document names another: it was changed.
    """
    content_digest = plan_digest(document)
    if document.get("plan_digest") != content_digest:
        raise UnexportablePlan(
            f"The plan says {document.get('plan_digest')}, but its content has the digest {content_digest};"
            " it was changed after it was published."
        )
    return content_digest


def unexportable(what: str, issues: Sequence[str], runtime: str) -> UnexportablePlan:
    """Return the error of a plan that a runtime cannot have, with a sentence for each table, and the way out."""
    more = f" And {len(issues) - _MAX_ISSUES} more." if len(issues) > _MAX_ISSUES else ""
    listed = " ".join(issues[:_MAX_ISSUES])
    return UnexportablePlan(f'{what}. {listed}{more} Plan for this runtime: set runtime to "{runtime}" in the spec.')


def hardware_profile_of(document: Mapping[str, Any]) -> str | None:
    """Return the name of the hardware profile; None for a plan from elsewhere that states none."""
    profile: str | None = (document.get("provenance") or {}).get("hardware_profile")
    return profile


def check_devices(document: PlanDocument, runtime: str) -> None:
    """Raise ``UnexportablePlan`` if a plan's hardware profile has devices that a runtime does not run on.

    A plan that names no profile of ours passes: its devices are not known.
    """
    profile = hardware_profile_of(document)
    families = RUNTIMES[runtime].device_families
    if profile is None or families is None:
        return
    try:
        family = load_profile(profile).family
    except UnknownProfile:
        return
    if family not in families:
        runs_on = " or ".join(sorted(families - {"custom"}))
        raise UnexportablePlan(
            f"The plan is for {profile}, whose devices are of the family {family}; {runtime} runs on {runs_on}. Plan"
            " for this runtime and hardware that it runs on: set runtime and hardware.profile in the spec."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFacts:
    """What is known in addition to a plan document."""

    problem: Problem | None = None  # what the plan was made for
    sparsecores_per_chip: int | None = None
