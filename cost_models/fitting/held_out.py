"""The figures of a model's document: how well it meets rows that its fit has not seen, by group, and points to draw.

Each group of ``groups`` has the ``kind`` of its rows, what it is ``by`` (one of ``GROUPINGS``), its name and its
:class:`~cost_models.fitting.assessment.Figures`. ``points_seconds`` are pairs of measured and predicted seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from cost_models.arrays import Floats, join_rows, take_rows
from cost_models.fitting.assessment import Figures, HeldOutResult, figures_by, points, size_labels
from cost_models.fitting.exchange_rows import Part, exchanges
from cost_models.fitting.launches import Launches
from cost_models.learned.document.reported_figures import MOST_POINTS
from cost_models.learned.exchange.curve import CollectiveKind
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.measurements.schema import Measurements
from cost_models.text.read_number import whole_number

#: Ends of the groups by bytes: a cache line of output is not a gibibyte, and between them each is 16 times the last.
_BYTES_ENDS = ((2**16, "to 64 KiB"), (2**20, "64 KiB to 1 MiB"), (2**24, "1 to 16 MiB"), (2**28, "16 to 256 MiB"))
_MORE_BYTES = "over 256 MiB"
_SMALLEST_SECONDS = float(np.finfo(np.float64).tiny)


def lookup_figures(
    test: Launches, together: HeldOutResult, by_target: Mapping[str, HeldOutResult], seed: int
) -> dict[str, object]:
    """Return figures of held-out launches, assessed for all targets ``together`` and for each.

    Bytes are those of the rows that a launch looks up, each time again.
    """
    held = test.columns.lookups * test.columns.row_bytes
    launch_bytes = np.bincount(test.launch, held, test.num_launches).astype(np.float64)
    groups = _groups(
        "lookup",
        together,
        {
            "shards": size_labels(test.num_shards.astype(np.int64)),
            "bytes": bytes_labels(launch_bytes),
            "ranks": [
                f"{count} {'rank' if count == 1 else 'ranks'} per host" for count in test.ranks_per_host.tolist()
            ],
        },
    )
    if len(by_target) > 1:
        for target, result in by_target.items():
            groups.append(_plain("lookup", "phase", figures_by([target] * test.num_launches, result)[1]))
    return {"groups": groups, "points": _pairs(together, seed)}


def exchange_figures(exchange: LearnedExchange, test: Measurements, seed: int) -> dict[str, object] | None:
    """Return figures of held-out collectives, rank by rank, if there are any; bytes are those of the busiest rank."""
    found, _ = held_out_exchanges(exchange, test)
    if not found:
        return None
    together = join_rows([result for _, _, result in found])
    of_kind, of_ranks, of_bytes = [], [], []
    for kind, part, result in found:
        count = len(result.measured_seconds)
        of_kind += [collective_label(kind)] * count
        of_ranks += [f"{part.num_ranks} ranks"] * count
        of_bytes += np.repeat(part.held_bytes.max(axis=1), part.num_ranks).tolist()
    labels = {"collective": of_kind, "bytes": bytes_labels(np.array(of_bytes)), "ranks": of_ranks}
    # In any order: rank correlation looks at the first rows of many.
    order = np.random.default_rng(seed).permutation(len(of_kind))
    mixed = {by: [names[i] for i in order.tolist()] for by, names in labels.items()}
    return {"groups": _groups("collective", take_rows(together, order), mixed), "points": _pairs(together, seed)}


def held_out_document(
    lookups: Mapping[str, object] | None, collectives: Mapping[str, object] | None
) -> dict[str, object]:
    """Return both as a document's ``figures``; empty where nothing was held out."""
    parts = {kind: part for kind, part in (("lookup", lookups), ("collective", collectives)) if part is not None}
    if not parts:
        return {}
    groups: list[object] = []
    for part in parts.values():
        assert isinstance(part["groups"], list)
        groups += part["groups"]
    return {
        "split": "by task",
        "groups": groups,
        "points_seconds": {kind: part["points"] for kind, part in parts.items()},
    }


def held_out_exchanges(
    exchange: LearnedExchange, rows: Measurements
) -> tuple[list[tuple[CollectiveKind, Part, HeldOutResult]], list[str]]:
    """Return, for every kind and number of ranks, the exchanges that a model prices, with what it predicts row by row.

    With them, each reason once, why it does not price others: plans do not either.
    """
    found, reasons = [], []
    for kind, measured in exchanges(rows).items():
        for part in measured:
            reason = exchange.unmeasured(kind, part.num_ranks)
            if reason:
                reasons.append(reason)
            else:
                found.append((kind, part, _held_out_exchange(exchange, kind, part)))
    return found, list(dict.fromkeys(reasons))


def collective_label(kind: CollectiveKind) -> str:
    """``"all_to_all forward"``, ``"reduce_scatter over several hosts"``."""
    return f"{kind.name} over several hosts" if kind.spans_hosts else kind.name


def bytes_labels(num_bytes: Floats) -> list[str]:
    """Name the sizes that a report distinguishes."""
    return [next((text for end, text in _BYTES_ENDS if held <= end), _MORE_BYTES) for held in num_bytes.tolist()]


def _held_out_exchange(exchange: LearnedExchange, kind: CollectiveKind, part: Part) -> HeldOutResult:
    found = exchange.rank_seconds(kind, part.held_bytes, part.held_bytes, part.start_seconds)
    seconds, lower, upper = (np.maximum(one, _SMALLEST_SECONDS).reshape(-1) for one in found)
    return HeldOutResult(
        measured_seconds=part.seconds.reshape(-1),
        predicted_seconds=seconds,
        lower_seconds=lower,
        upper_seconds=upper,
    )


def _groups(kind: str, rows: HeldOutResult, labels: Mapping[str, Sequence[str]]) -> list[dict[str, object]]:
    """Return the figures of all rows, then by each kind of label in the order of sizes."""
    groups = [_plain(kind, "all", figures_by([""] * len(rows.measured_seconds), rows)[0])]
    for by, names in labels.items():
        found = figures_by(names, rows)[1:]
        groups += [_plain(kind, by, one) for one in sorted(found, key=lambda one: _place(one.group))]
    return groups


def _place(label: str) -> tuple[int, int, str]:
    """Sort bytes by size, counts by number and names by letter."""
    sizes = [text for _, text in _BYTES_ENDS] + [_MORE_BYTES]
    if label in sizes:
        return sizes.index(label), 0, ""
    number = label.partition(" ")[0].partition("-")[0]
    return 0, whole_number(number) or 0, label


def _plain(kind: str, by: str, one: Figures) -> dict[str, object]:
    """Return figures as JSON values: null where there is no number."""
    plain = {name: None if value != value else value for name, value in asdict(one).items()}
    return {"kind": kind, "by": by, **plain}


def _pairs(rows: HeldOutResult, seed: int) -> list[list[float]]:
    return [list(pair) for pair in points(rows, MOST_POINTS, seed)]
