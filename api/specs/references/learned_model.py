"""What the shell does with learned cost models: read a document, fit one, judge one on rows."""

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import takewhile

import numpy as np

from api.specs.input.json import RejectedDocument, is_quotable, pointer
from cost_models.errors import InvalidModelFile
from cost_models.fitting.assessment import Figures, figures, figures_by, size_labels
from cost_models.fitting.held_out import collective_label, held_out_exchanges
from cost_models.fitting.launches import Launches, launches
from cost_models.fitting.model import fit_model, held_out_result
from cost_models.learned.document.file import MAX_FILE_BYTES, parse_model
from cost_models.learned.lookups.fitted import FittedCompute
from cost_models.learned.model import LearnedModel
from cost_models.learned.reach.coverage import verdicts
from cost_models.measurements.schema import Measurements
from planner.domain.formats.canonical_json import canonical_bytes
from planner.errors import Issue, PlannerError

MAX_MODEL_BYTES = MAX_FILE_BYTES
_PLACE = re.compile(r"[^.\[\]]+")


class CannotFit(PlannerError):
    """Rows that no model can be fitted to, or a library that is missing."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        self.code, self.hint = code, hint
        super().__init__(message)


@functools.lru_cache(maxsize=16)
def load_model(raw: bytes) -> LearnedModel:
    """Return the model of a document; raises ``RejectedDocument`` with the place and the reason."""
    try:
        return parse_model(raw)
    except InvalidModelFile as error:
        issue = Issue(code=error.code, pointer=_pointer(error.place), message=error.reason, hint=error.hint)
        raise RejectedDocument([issue]) from None


def fit(rows: Measurements, name: str, seed: int) -> bytes:
    """Return the canonical bytes of a model fitted to ``rows``; equal rows and seeds give equal documents.

    Raises
    ------
    CannotFit
        The rows are too few, or of several devices or implementations; or torch is missing.
    """
    try:
        return canonical_bytes(fit_model(rows, name=name, seed=seed))
    except ValueError as error:
        hint = "measure more launches: shardplan measure; and choose rows of one device and implementation"
        raise CannotFit("cannot-fit", str(error), hint) from error
    except ModuleNotFoundError as error:
        message = f"fitting this many launches needs {error.name}, which is not installed"
        raise CannotFit("missing-extra", message, "pip install 'shardplan[train]'") from error


def assess(model: LearnedModel, rows: Measurements) -> dict[str, object]:
    """Return the figures of a model on rows, by group; and which rows it does not speak of."""
    found: list[Figures] = []
    not_judged: list[str] = []
    if np.any(rows.text("kind") == "lookup"):
        if model.fitted is None:
            not_judged.append("lookups: the model learned none")
        else:
            found += _of_lookups(model.fitted, launches(rows))
    if model.exchange is not None:
        known, reasons = held_out_exchanges(model.exchange, rows)
        found += [
            figures(f"{collective_label(key)}, {part.num_ranks} ranks", curve_result)
            for key, part, curve_result in known
        ]
        not_judged += reasons
    elif np.any(rows.text("kind") == "collective"):
        not_judged.append("collectives: the model learned none")
    if np.any(rows.text("kind") == "copy"):
        not_judged.append("copies: models do not price them")
    return {"groups": [_plain(one) for one in found], "not_judged": not_judged}


def _of_lookups(fitted: FittedCompute, measured: Launches) -> tuple[Figures, ...]:
    num_targets = len(fitted.compute.targets)
    if measured.targets != fitted.compute.targets:  # one of the two knows no directions: the sum is judged
        both = np.zeros((measured.num_launches, num_targets))
        both[:, 0] = measured.seconds.sum(axis=1)
        measured = replace(measured, targets=fitted.compute.targets, seconds=both)
    return figures_by(size_labels(measured.num_shards.astype(np.int64)), held_out_result(fitted, measured))


def _plain(one: Figures) -> Mapping[str, object]:
    """Return figures as JSON values: null where there is no number."""
    return {name: None if value != value else value for name, value in asdict(one).items()}


def _pointer(place: str) -> str:
    """Return "compute.networks[0]" as a JSON pointer; what came from outside and may not be repeated is cut off."""
    if place == "file":
        return ""
    parts = takewhile(is_quotable, _PLACE.findall(place))
    return pointer(parts)


def figures_of_model(document: bytes) -> Mapping[str, object]:
    """Return what lists show of the held-out figures of a model that was read, with the verdict on its rows.

    The points of its picture are left out.
    """
    read = json.loads(document)
    stated = {name: value for name, value in read["figures"].items() if name != "points_seconds"}
    return {**stated, "verdicts": [asdict(one) for one in verdicts(read)]}
