"""Plans are written for runtimes that run on the devices that they were made for."""

from collections.abc import Mapping
from typing import cast

from cost_models.errors import UnknownProfile
from cost_models.profiles_loader import load_profile
from planner.exporters.refusal import UnexportablePlan
from planner.runtimes.registry import RUNTIMES


def check_devices(document: Mapping[str, object], runtime: str) -> None:
    """Raise ``UnexportablePlan`` where a plan's hardware profile has devices that a runtime does not run on.

    Of a plan that names no profile of ours nothing is known.
    """
    profile = cast("Mapping[str, str]", document.get("provenance") or {}).get("hardware_profile")
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
