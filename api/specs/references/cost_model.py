"""What ``cost_model`` of a spec names: an analytic model, or a learned one, whose digest is what the spec keeps.

    roofline              an analytic model, by its name
    learned               the learned model that is active for the hardware profile of the spec
    learned:NAME@VERSION  a version of a learned model that the service keeps
    learned:sha256:...    a learned model by its digest; what the other two become

A normalised spec names a learned model by its digest alone, so that what it means never changes: a model that is
activated later, or another service, changes no spec that was read before.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from api.schemas.base import MODEL_ID
from api.specs.input.json import RejectedDocument
from api.specs.issues import IssueCollector
from api.specs.references.learned_model import load_model
from cost_models.hardware.profiles_loader import CUSTOM, load_profile
from cost_models.learned.model import LearnedModel
from cost_models.learned.shipped import shipped_for, shipped_models
from cost_models.protocol import CostModel
from cost_models.registry import cost_model_names, make_cost_model
from cost_models.text.number_text import counted
from planner.domain.plan.plan import Assumption
from planner.errors import Issue

LEARNED = "learned"
_REFERENCE = re.compile(rf"{LEARNED}(?::(?:(?P<id>{MODEL_ID})|(?P<digest>sha256:[0-9a-f]{{64}})))?")
#: A query parameter that names a cost model.
COST_MODEL_PATTERN = rf"^({'|'.join(cost_model_names())}|{LEARNED}(:({MODEL_ID}|sha256:[0-9a-f]{{64}}))?)$"
SPELLINGS = f"{LEARNED}, {LEARNED}:NAME@VERSION or {LEARNED}:sha256:..."
_MAX_LISTED = 5
_HOW_TO_GET_ONE = (
    "measure the machine (shardplan measure) and fit one: shardplan fit, then --cost-model-file; "
    "or POST /v1/measurements, POST /v1/cost-models and PUT /v1/hardware-profiles/{profile}/cost-model"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundModel:
    """A learned model that a spec may mean."""

    canonical: bytes
    called: str  # what people call it: "prod@3"


class FindModel(Protocol):
    """Where learned models are looked up."""

    def active(self, profile: str) -> FoundModel | None:
        """Return the model that is active for a hardware profile."""

    def named(self, name: str, version: int) -> FoundModel | None:
        """Return a version of a model."""

    def of_digest(self, digest: str) -> FoundModel | None:
        """Return the model of a digest."""

    def device_of(self, profile: str) -> str | None:
        """Return the device of the model that somebody made active for a profile; it is the profile's device."""

    def available(self) -> Sequence[str]:
        """Return references to some that there are, for people."""


class ShippedModels:
    """The models of the package alone: what there is without a service."""

    def active(self, profile: str) -> FoundModel | None:
        """Return the model that was measured on machines of the profile."""
        name = shipped_for(profile)
        return None if name is None else FoundModel(canonical=shipped_models()[name], called=name)

    def named(self, name: str, version: int) -> FoundModel | None:
        """Nothing: versions are a service's."""
        return None

    def of_digest(self, digest: str) -> FoundModel | None:
        for name, content in shipped_models().items():
            if load_model(content).digest == digest:
                return FoundModel(canonical=content, called=name)
        return None

    def device_of(self, profile: str) -> str | None:
        """Return the device of the model that was measured on machines of the profile."""
        return device_of(self.active(profile))

    def available(self) -> Sequence[str]:
        return [f"{LEARNED}:{load_model(content).digest}" for content in shipped_models().values()]


@dataclass(frozen=True, slots=True)
class OneModel:
    """A model that was handed over; it is active for every profile."""

    canonical: bytes

    def active(self, profile: str) -> FoundModel | None:
        return FoundModel(canonical=self.canonical, called=load_model(self.canonical).name)

    def named(self, name: str, version: int) -> FoundModel | None:
        """Nothing: versions are a service's."""
        return None

    def of_digest(self, digest: str) -> FoundModel | None:
        return self.active("") if load_model(self.canonical).digest == digest else None

    def device_of(self, profile: str) -> str | None:
        """Nothing: that it was handed over says nothing of the machine."""
        return None

    def available(self) -> Sequence[str]:
        return [f"{LEARNED}:{load_model(self.canonical).digest}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModel:
    """The cost model that a spec means, by the name that says so for ever."""

    name: str
    model: CostModel
    assumptions: tuple[Assumption, ...] = ()
    warnings: tuple[Issue, ...] = ()


def device_of(model: FoundModel | None) -> str | None:
    """Return the device that a model was measured on; ``None`` of one that this version cannot read."""
    try:
        return None if model is None else load_model(model.canonical).device
    except RejectedDocument:
        return None


def is_reference(name: str) -> bool:
    """Whether a name is spelled as that of a learned model."""
    return _REFERENCE.fullmatch(name) is not None


def learned_digest(name: str) -> str | None:
    """Return the digest that the name of a cost model pins; ``None`` of an analytic one."""
    found = _REFERENCE.fullmatch(name)
    return None if found is None else found["digest"]


def choose_model(name: str, profile: str, find: FindModel, issues: IssueCollector) -> ChosenModel | None:
    """Return the cost model of a name that is spelled as one, or report why there is none."""
    found = _REFERENCE.fullmatch(name)
    if found is None:
        return ChosenModel(name=name, model=make_cost_model(name))
    if found["digest"] is not None:
        document = find.of_digest(found["digest"])
    elif found["id"] is not None:
        model_name, _, version = found["id"].partition("@")
        document = find.named(model_name, int(version))
    else:
        document = find.active(profile)
    if document is None:
        issues.add(_missing(name, profile, find.available()))
        return None
    try:
        learned = load_model(document.canonical)
    except RejectedDocument as error:
        issues.add(_unreadable(document.called, error.issues[0]))
        return None
    why = f", which was active for {profile} when the spec was read" if name == LEARNED else ""
    source = f"{document.called}{why}; fitted to measurements of {learned.device}"
    pinned = pinned_name(learned)
    return ChosenModel(
        name=pinned,
        model=learned,
        assumptions=(Assumption(subject="cost_model", value=pinned, evidence="note", source=source),),
        warnings=() if name == LEARNED else tuple(_other_device(learned, document.called, profile, find)),
    )


def pinned_name(learned: LearnedModel) -> str:
    """Return the name that means this model for ever."""
    return f"{LEARNED}:{learned.digest}"


def _other_device(learned: LearnedModel, called: str, profile: str, find: FindModel) -> Iterator[Issue]:
    """Yield a warning where nothing says that a model was measured on the device of the profile."""
    hardware = load_profile(profile)
    known = {device.casefold() for device in (*hardware.devices, find.device_of(profile) or "")}
    if profile == CUSTOM or learned.device.casefold() in known:
        return
    yield Issue(
        code="other-device",
        pointer="/cost_model",
        message=f"the learned cost model {called} was measured on {learned.device}, and nothing says that this is "
        f"the device of the hardware profile {profile} ({hardware.description}): its seconds may be another machine's",
        hint=f"if it is the same, make the model active for the profile (PUT /v1/hardware-profiles/{profile}/cost-model"
        " of a server); if not, choose one that was measured on such a machine, or roofline",
        severity="warning",
    )


def _unreadable(called: str, why: Issue) -> Issue:
    """Say which model another version wrote: the way out names no field of the spec's."""
    message = f"this version cannot read the learned cost model {called}: {why.pointer} {why.message}"
    return Issue(code=why.code, pointer="/cost_model", message=message, hint=why.hint)


def _missing(name: str, profile: str, available: Sequence[str]) -> Issue:
    if name == LEARNED:
        message = f"no learned cost model is active for the hardware profile {profile}"
    else:
        message = "no learned cost model of this name is here, or it is not ready"
    listed = f"there {'is' if len(available) == 1 else 'are'} {', '.join(available[:_MAX_LISTED])}"
    if len(available) > _MAX_LISTED:
        listed += f" and {counted(len(available) - _MAX_LISTED, 'other')}"
    hint = f"{listed if available else 'there is none'}; {_HOW_TO_GET_ONE}; or use roofline"
    return Issue(code="unknown-cost-model", pointer="/cost_model", message=message, hint=hint)
