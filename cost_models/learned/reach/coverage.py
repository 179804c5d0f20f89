"""Whether a model's rows are enough to rely on, and what to measure more of, by its document alone.

Two things need rows that the fit has not seen. *Mean errors*: those of n launches, which scatter about as much as they
are large, are known to 1/sqrt(n) of themselves. *Intervals* at coverage c: conformal limits are the k-th smallest
deviation of n, k = c (n + 1), which there is from n = c / (1 - c) on; the two limits of a collective leave out
(1 - c) / 2 each, and so need (1 + c) / (1 - c). With fewer the largest deviation stands in, and holds n times of n + 1.

That is of all rows together. Whether intervals hold in one phase or at one size is seen on the rows held out: of n that
lie inside with probability c each, a share q or less does so with a probability of at most exp(-n D), where D is the
relative entropy q ln(q / c) + (1 - q) ln((1 - q) / (1 - c)). Groups with less than `BY_CHANCE` are named.

References
----------
Lei et al., "Distribution-free predictive inference for regression", JASA 113 (2018): sections 2.1 and 2.2.
Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 58 (1963): theorem 1, (2.1).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cost_models.text.number_text import counted
from cost_models.text.read_number import whole_number

#: A mean of this many errors is known to 18 % of itself: two models that differ by half can be distinguished.
LEAST_HELD_OUT = 30
#: Launches or exchanges of which so many are held out: a tenth of them is.
LEAST_MEASURED = 10 * LEAST_HELD_OUT
#: A group that lies inside as seldom as this is no accident, also among the ten or twenty of a report.
BY_CHANCE = 0.01
MOST_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What there is to say of the rows of one kind."""

    kind: str  # "lookup" or "collective"
    enough: bool
    num_rows: int  # that were measured
    num_held_out: int  # launches, or exchanges of all ranks
    detail: str  # what the rows let be known
    advice: str  # what to measure more; "" where there is enough
    all_hold: bool  # no group of held-out rows has intervals that hold clearly less often than they are made to

    @property
    def text(self) -> str:
        """All of it in words."""
        named = "Lookups" if self.kind == "lookup" else "Collectives"
        head = "enough was measured" if self.enough else "too little was measured to rely on"
        head += "" if self.all_hold else "; some intervals are too narrow"
        return (
            f"{named}: {head}. {counted(self.num_rows, 'row')}. {self.detail}{f' {self.advice}' if self.advice else ''}"
        )


def verdicts(document: Mapping[str, Any]) -> tuple[Verdict, ...]:
    """Return a verdict on each kind of rows that the model of a document learned from."""
    found = []
    if document["compute"] is not None:
        found.append(_of_lookups(document))
    if document["exchange"] is not None:
        found.append(_of_collectives(document))
    return tuple(found)


def _of_lookups(document: Mapping[str, Any]) -> Verdict:
    """Assess lookups; with networks all launches calibrate intervals, else about as many as are held out."""
    compute = document["compute"]
    held_out = sum(group["num_rows"] for group in held_out_groups(document, "lookup", "all"))
    coverage = min(interval["coverage"] for interval in compute["intervals"])
    least = _least(coverage / (1 - coverage))
    has_intervals = bool(compute["networks"]) or held_out >= least
    if compute["networks"]:
        basis = "Intervals rest on all launches."
    elif has_intervals:
        basis = f"Intervals rest on about {counted(held_out, 'launch', 'launches')}."
    else:
        basis = f"Intervals rest on {_about(held_out, 'launch', 'launches')}{_holding(held_out, coverage)}"
    enough = has_intervals and held_out >= LEAST_HELD_OUT
    held, all_hold = _held(document, "lookup", coverage)
    return Verdict(
        kind="lookup",
        enough=enough,
        num_rows=document["trained_on"]["rows"].get("lookup", 0),
        num_held_out=held_out,
        detail=f"{_known_errors(held_out, 'launch', 'launches')} {basis}{held}",
        advice="" if enough else _advice("launches of lookups"),
        all_hold=all_hold,
    )


def _of_collectives(document: Mapping[str, Any]) -> Verdict:
    """Assess collectives; every exchange calibrates the interval of its curve and number of ranks."""
    exchange = document["exchange"]
    # Groups by ranks are called "4 ranks"; every rank of an exchange has a row, and all are late together.
    of_ranks = held_out_groups(document, "collective", "ranks")
    held_out = sum(group["num_rows"] // _leading_number(group["group"]) for group in of_ranks)
    coverage = exchange["coverage"]
    least = _least((1 + coverage) / (1 - coverage))
    thin = {
        f"{curve['operation']} {curve['direction']}".strip(): exchanges
        for curve in exchange["curves"]
        if (exchanges := int(curve["num_rows"] // sum(curve["range"]["rank_counts"]))) < least
    }
    if thin:
        few = min(thin.values())
        basis = (
            f"Intervals of {', '.join(thin)} rest on as few as {counted(few, 'exchange')} of one number of ranks and "
            f"may hold less often than {coverage:.0%}: {least} are needed."
        )
    else:
        basis = f"Intervals rest on {least} exchanges or more of each collective and number of ranks."
    enough = not thin and held_out >= LEAST_HELD_OUT
    most_ranks = max((_leading_number(group["group"]) for group in of_ranks), default=1)
    held, all_hold = _held(document, "collective", coverage, most_ranks)
    return Verdict(
        kind="collective",
        enough=enough,
        num_rows=document["trained_on"]["rows"].get("collective", 0),
        num_held_out=held_out,
        detail=f"{_known_errors(held_out, 'exchange', 'exchanges')} {basis}{held}",
        advice="" if enough else _advice("exchanges, of every collective and number of ranks"),
        all_hold=all_hold,
    )


def _held(document: Mapping[str, Any], kind: str, coverage: float, alike: int = 1) -> tuple[str, bool]:
    """Say how often intervals held on held-out rows, and whether in all groups; ``alike`` rows go together."""
    groups = [group for group in document["figures"].get("groups", ()) if group["kind"] == kind]
    share_text = "".join(
        f" They are made to hold for {coverage:.0%} of rows, and held for {group['coverage']:.1%} of those held out."
        for group in groups
        if group["by"] == "all"
    )
    short = {group["group"]: group["coverage"] for group in groups if _falls_short(group, coverage, alike)}
    if not short:
        return share_text, True
    worst = sorted(short.items(), key=lambda named: float(named[1]))[:MOST_NAMED]
    shares = ", ".join(f"{name} {share:.1%}" for name, share in worst)
    return f"{share_text} Among some they held clearly less: {shares}. There they are too narrow.", False


def _falls_short(group: Mapping[str, Any], coverage: float, alike: int) -> bool:
    """Return whether fewer rows of a group lie inside than chance explains."""
    inside = group["coverage"]
    if inside >= coverage:
        return False
    entropy = (1 - inside) * math.log((1 - inside) / (1 - coverage))
    if inside > 0:
        entropy += inside * math.log(inside / coverage)
    return bool(math.exp(-group["num_rows"] / alike * entropy) < BY_CHANCE)


def held_out_groups(document: Mapping[str, Any], kind: str, by: str) -> list[Mapping[str, Any]]:
    """Return the figures of held-out rows of a kind, by one property of theirs."""
    groups = document["figures"].get("groups", ())
    return [group for group in groups if (group["kind"], group["by"]) == (kind, by)]


def _leading_number(group: str) -> int:
    """Return 4 of ``"4 ranks"``; 1 of a name that no fit of ours wrote."""
    number = group.partition(" ")[0]
    return max(whole_number(number) or 1, 1)


def _least(share: float) -> int:
    """Round up, but for what floating point adds to 9 or 19."""
    return math.ceil(share - 1e-9)


def _known_errors(held_out: int, one: str, many: str) -> str:
    if held_out == 0:
        return "None were held out: errors are not known."
    text = f"{counted(held_out, one, many)} held out: the mean error is known to about {held_out**-0.5:.0%} of itself"
    if held_out < LEAST_HELD_OUT:
        text += f"; with {LEAST_HELD_OUT} it is {LEAST_HELD_OUT**-0.5:.0%}"
    return f"{text}."


def _about(held_out: int, one: str, many: str) -> str:
    return f"about {counted(held_out, one, many)}" if held_out else f"one {one} or a few"


def _holding(held_out: int, coverage: float) -> str:
    least = _least(coverage / (1 - coverage))
    often = f"hold {held_out / (held_out + 1):.0%} of the time, not {coverage:.0%}" if held_out else "may hold seldom"
    return f" and {often}, for they are no wider than the largest error among these: {least} are needed."


def _advice(what: str) -> str:
    return f"Measure about {LEAST_MEASURED} {what} on this device: shardplan measure with a larger --budget."
