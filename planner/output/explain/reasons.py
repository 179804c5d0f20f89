"""Why a table is cut as it is, in words; every number in them was computed."""

import itertools
from collections.abc import Sequence

from cost_models.vocabulary import Scheme, Tier
from planner.domain.formats.units import format_bytes, format_seconds
from planner.domain.problem.storage import Storage
from planner.output.explain.alternatives import Alternative

_SAME = 1e-6  # relative change of the objective that counts as none
_LONGER = 1.005  # times as long, from which on a phase is named

_PLACES = {Tier.DDR: "host memory", Tier.SCM: "storage-class memory", Tier.SSD: "block storage"}


def cut_in_words(scheme: Scheme, columns: Sequence[int], group: str) -> str:
    """Return the words of a scheme, such as ``"cut by columns (2x48 + 32)"`` for pieces of 48, 32 and 48 columns.

    ``group`` is what ranks that stay near are: ``"host"`` or ``"pod"``.
    """
    runs = [(width, len(list(run))) for width, run in itertools.groupby(sorted(columns, reverse=True))]
    widths = " + ".join(f"{count}x{width}" if count > 1 else f"{width}" for width, count in runs)
    return scheme.facts.words.format(widths, group=group)


def storage_in_words(storage: Storage) -> str:
    """Return ``", in host memory behind a cache of 10% of its rows"``; ``""`` if the device's memory has all rows."""
    tier = storage.tier(Tier.HBM)
    if tier is Tier.HBM:
        return ""
    place = _PLACES[tier]
    if storage.hot_row_share > 0:
        return f", its hottest {_percent(storage.hot_row_share)} of rows near and the others in {place}"
    share = storage.cache_load_factor
    return f", in {place}" if share is None else f", in {place} behind a cache of {_percent(share)} of its rows"


def reason(
    scheme: Scheme,
    storage: Storage,
    columns: Sequence[int],
    alternatives: Sequence[Alternative],
    *,
    objective_seconds: float,
    is_pinned: bool,
    group: str,
    is_given_cut: bool = False,
) -> str:
    """Return why a table is cut so: what its next best cut would cost, and what leaving it whole would.

    Parameters
    ----------
    scheme, storage, columns
        How the plan has the table; columns of each piece.
    alternatives
        What else it could be, those that fit first, cheapest first.
    objective_seconds
        Of the plan.
    is_pinned
        Whether the user fixed the table's pieces.
    group
        ``"host"`` or ``"pod"``: what tables are cut over that stay near.
    is_given_cut
        Whether the table's pieces have the columns of those in the checkpoint that the job starts from.
    """
    now = cut_in_words(scheme, columns, group) + storage_in_words(storage)
    now += ", as in the checkpoint" if is_given_cut else ""
    if is_pinned:
        return f"{now}, because the spec pins it"
    if not alternatives:
        return f"{now}; no other cut is allowed while the other tables stay as they are"
    shown = [alternatives[0]]
    whole = (one for one in alternatives[1:] if one.scheme.is_whole and not scheme.is_whole)
    shown += itertools.islice(whole, 1)
    lead = "no other cut fits" if alternatives[0].excess_bytes > 0 else "next best"
    return f"{now}; {lead}: " + "; ".join(
        f"{cut_in_words(one.scheme, one.columns, group)}{_storage(one, scheme, storage)}, which would"
        f" {_effect(one, objective_seconds)}"
        for one in shown
    )


def _storage(one: Alternative, scheme: Scheme, storage: Storage) -> str:
    """Return where an alternative has its rows; its kernel or type if two cuts differ in nothing else."""
    words = storage_in_words(one.storage)
    if one.scheme is not scheme or words != storage_in_words(storage):
        return words
    if one.storage.kernel is not storage.kernel:
        return f" with the {one.storage.kernel.label} kernel"
    return f" as {one.storage.data_type.name}" if one.storage.data_type is not storage.data_type else ""


def _effect(one: Alternative, objective_seconds: float) -> str:
    """Return what one alternative would do; at most that, unless all its cuts and sites were tried."""
    at_most = "" if one.is_best else "at most "
    if one.excess_bytes > 0:
        return f"exceed the memory of a rank by {at_most}{format_bytes(one.excess_bytes)}"
    if abs(one.change_seconds) <= _SAME * objective_seconds:
        return "cost the same"
    share = abs(one.change_seconds) / objective_seconds if objective_seconds > 0 else 0.0
    change = f"{format_seconds(abs(one.change_seconds))} ({_percent(share)})"
    if one.change_seconds < 0:
        return f"save {change}: the plan is not the best one"
    return f"add {at_most}{change}{_where(one)}{_starts(one)}"


def _starts(one: Alternative) -> str:
    """Return what a sharding type more or less would start."""
    words = []
    if one.opened_seconds > 0:
        opened = f"{_ordinal(one.num_kinds)} set of collectives" if one.num_kinds > 1 else "a set of collectives"
        words.append(f"{one.scheme.label} would open {opened}: +{format_seconds(one.opened_seconds)}")
    if one.closed_seconds > 0:
        words.append(f"one set of collectives less would save {format_seconds(one.closed_seconds)}")
    return "".join(f" ({word})" for word in ("; ".join(words),) if word)


def _ordinal(number: int) -> str:
    """``"a second"``; numbers above nine in digits."""
    known = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
    if number - 2 < len(known):
        word = known[number - 2]
        return f"an {word}" if word == "eighth" else f"a {word}"
    return f"one more ({number:,} in all)"


def _where(one: Alternative) -> str:
    """Return how much longer the phase becomes that lengthens most."""
    before, after = one.phase_seconds
    if one.phase is None or after < before * _LONGER:
        return ""
    if before <= 0:
        return f", above all in {one.phase.label}"
    return f", with {one.phase.label} {after / before:.3g}x as long"


def _percent(share: float) -> str:
    """``"0.31%"``: two significant digits, for most changes are small."""
    return f"{100 * share:.2g}%" if share < 1 else f"{share:.0%}"
