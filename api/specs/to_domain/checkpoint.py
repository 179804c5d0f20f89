"""The checkpoints of a spec as values of the domain, and what was assumed about them."""

from collections.abc import Iterator

from api.schemas.checkpoint import CheckpointSpec
from cost_models.text.number_text import digits_text
from cost_models.vocabulary import Evidence
from planner.domain.plan.plan import Assumption
from planner.domain.problem.checkpoint import DEFAULT_FULL_EVERY, Checkpoint

_RATES = ("upload_bytes_per_second", "download_bytes_per_second")


def checkpoint_of(spec: CheckpointSpec) -> Checkpoint:
    """Return how the job is checkpointed."""
    derived = {"full_every": _full_every(spec), "rate_evidence": _rate_evidence(spec)}
    return Checkpoint(**{**dict(spec), **derived})


def _rate_evidence(spec: CheckpointSpec) -> Evidence:
    """Return the evidence by value: a stored spec has its defaults filled in, and must mean the same."""
    is_default = any(getattr(spec, name) == CheckpointSpec.model_fields[name].default for name in _RATES)
    return Evidence.ESTIMATED if is_default else Evidence.GIVEN


def normalised_checkpoint(spec: CheckpointSpec) -> dict[str, object]:
    """Return the document with its defaults filled in."""
    return spec.model_dump(mode="json", exclude_none=True) | {"full_every": _full_every(spec)}


def _full_every(spec: CheckpointSpec) -> int:
    return spec.full_every or (1 if spec.policy == "full" else DEFAULT_FULL_EVERY)


def checkpoint_assumptions(spec: CheckpointSpec | None) -> Iterator[Assumption]:
    """Yield the defaults that were filled in; rates of the store are estimates."""
    if spec is None:
        return
    texts = {
        "policy": spec.policy,
        "full_every": str(_full_every(spec)),
        "bits": "weights are stored as they are",
        "intervals_between_failures": f"{spec.intervals_between_failures:g}",
        "balance": "false",
    }
    for name, text in texts.items():
        if getattr(spec, name) is None or name not in spec.model_fields_set:
            yield Assumption(subject=f"checkpoint.{name}", value=text, evidence="default", source="default of the spec")
    for name in _RATES:
        if name not in spec.model_fields_set:
            yield Assumption(
                subject=f"checkpoint.{name}",
                value=f"{digits_text(getattr(spec, name))} bytes_per_second",
                evidence=Evidence.ESTIMATED.label,
                source="a remote store of checkpoints, one host's share: an estimate, no measurement is known",
            )
