"""Fits a whole learned model to measured rows: a pure function of rows, names and seed that returns its document."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from cost_models.fitting.assessment import HeldOutResult
from cost_models.fitting.compute import fit_compute
from cost_models.fitting.exchange import fit_exchange
from cost_models.fitting.exchange_split import held_out_exchanges
from cost_models.fitting.held_out import exchange_figures, held_out_document, lookup_figures
from cost_models.fitting.launches import Launches, launches
from cost_models.fitting.predicting import contentions, launch_seconds
from cost_models.fitting.repeats import repeats_document
from cost_models.fitting.split import split_by_task
from cost_models.fitting.training import Effort
from cost_models.learned.document.file import model_document
from cost_models.learned.lookups.contention import Contention
from cost_models.learned.lookups.fitted import FittedCompute
from cost_models.learned.reach.ranges import rank_sums
from cost_models.measurements.schema import COLUMN_NAMES, Measurements


def fit_model(rows: Measurements, *, name: str, seed: int = 0, effort: Effort | None = None) -> dict[str, object]:
    """Fit lookups and collectives, as far as there are rows of them, and return the model's document.

    Both are split by task. A tenth of the lookups calibrates intervals, another tenth assesses the model,
    as does a tenth of the collectives. The figures of what was held out are in the document.

    Raises
    ------
    ValueError
        There is nothing to fit, or rows are of several devices.
    """
    kinds = rows.text("kind")
    has_lookups, has_collectives = bool(np.any(kinds == "lookup")), bool(np.any(kinds == "collective"))
    if not has_lookups and not has_collectives:
        raise ValueError("Expected rows of lookups or collectives; there are none.")
    devices = np.unique(rows.text("device"))
    if len(devices) > 1:
        raise ValueError(f"Expected rows of one device, not of {', '.join(devices.tolist())}; choose one of them.")
    fitted, of_lookups, repeats, exchange, of_collectives = None, None, None, None, None
    if has_lookups:
        measured = launches(rows)
        repeats = repeats_document(measured)
        split = split_by_task(measured, seed)
        fitted = fit_compute(measured, split, seed=seed, effort=effort)
        if len(split.test):
            of_lookups = _lookup_figures(fitted, measured.take(split.test), seed)
    if has_collectives:
        collectives = rows.take(kinds == "collective")
        several = np.unique(collectives.text("implementation"))
        if len(several) > 1:
            raise ValueError(f"Expected collectives of one implementation, not of {', '.join(several)}; choose one.")
        held = held_out_exchanges(collectives, seed)
        exchange = fit_exchange(collectives.take(~held), seed=seed)
        if np.any(held):
            of_collectives = exchange_figures(exchange, collectives.take(held), seed)
    return model_document(
        name=name,
        device=str(devices[0]),
        fitted=fitted,
        exchange=exchange,
        trained_on={**_trained_on(rows, seed), "repeats": repeats},
        figures=held_out_document(of_lookups, of_collectives),
    )


def held_out_result(fitted: FittedCompute, test: Launches, target: int | None = None) -> HeldOutResult:
    """Return what a model predicts of held-out launches, of one target or (``None``) of all together.

    The limits of a sum of targets are the sums of their limits.
    """
    seconds = launch_seconds(fitted.compute, fitted.contention, test)
    held = rank_sums(test.columns, test.launch, test.num_launches)
    reach = fitted.reach(seconds, held, contentions(fitted.contention, test), _doublings(fitted.contention, test))
    lower, upper = seconds * np.exp(-reach), seconds * np.exp(reach)
    columns = [target] if target is not None else list(range(seconds.shape[1]))
    return HeldOutResult(
        measured_seconds=test.seconds[:, columns].sum(axis=1),
        predicted_seconds=seconds[:, columns].sum(axis=1),
        lower_seconds=lower[:, columns].sum(axis=1),
        upper_seconds=upper[:, columns].sum(axis=1),
    )


def _doublings(contention: Contention, test: Launches) -> NDArray[np.float64]:
    return np.array([contention.doublings_beyond(ranks) for ranks in test.ranks_per_host.tolist()])


def _lookup_figures(fitted: FittedCompute, test: Launches, seed: int) -> dict[str, object]:
    by_target = {target: held_out_result(fitted, test, i) for i, target in enumerate(fitted.compute.targets)}
    return lookup_figures(test, held_out_result(fitted, test), by_target, seed)


def _trained_on(rows: Measurements, seed: int) -> dict[str, object]:
    kinds, count = np.unique(rows.text("kind"), return_counts=True)
    return {
        "rows_digest": rows_digest(rows),
        "rows": dict(zip(kinds.tolist(), count.tolist(), strict=True)),
        "launches": len(np.unique(rows.counts("launch"))),
        "libraries": np.unique(rows.text("library")).tolist(),
        "implementations": np.unique(rows.text("implementation")).tolist(),
        "seed": seed,
    }


def rows_digest(rows: Measurements) -> str:
    """Return a digest of all rows in their order: equal rows from any file have the same."""
    digest = hashlib.sha256()
    for name in COLUMN_NAMES:
        digest.update("\n".join([name, *map(str, rows.columns[name].tolist())]).encode())
    return f"sha256:{digest.hexdigest()}"
