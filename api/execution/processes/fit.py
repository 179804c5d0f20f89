"""What runs in the process of a fit: rows in, a model or an error out; it may be killed at any moment."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from api.schemas.measured_batch import rows_of
from api.specs.references.learned_model import figures_of_model, load_model
from cost_models.errors import CostModelError
from cost_models.measurements.schema import Measurements, joined
from planner.errors import PlannerError

#: ``api.specs.references.learned_model.fit``, or a stand-in for tests.
FitFunction = Callable[[Measurements, str, int], bytes]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitJob:
    """One fit, as it is handed to a process."""

    batches: Sequence[bytes]  # canonical bytes of measurements
    name: str
    seed: int
    fit: FitFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class FitAnswer:
    """A model, or why there is none."""

    digest: str | None = None
    device: str = ""
    figures: Mapping[str, object] | None = None
    canonical: bytes | None = None
    error: dict[str, str] | None = None


def run_fit(job: FitJob) -> FitAnswer:
    try:
        canonical = job.fit(joined([rows_of(batch) for batch in job.batches]), job.name, job.seed)
    except (CostModelError, PlannerError) as error:
        return FitAnswer(error={"code": error.code, "message": str(error), "hint": getattr(error, "hint", "")})
    except MemoryError:
        return FitAnswer(error={"code": "out-of-memory", "message": "the fit needed more memory than it may take"})
    model = load_model(canonical)
    return FitAnswer(digest=model.digest, device=model.device, figures=figures_of_model(canonical), canonical=canonical)
