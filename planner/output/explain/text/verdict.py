"""The verdict on a plan in a sentence or two."""

from planner.domain.plan.baseline import LEGAL, NO_PLAN, PREVIOUS_PLAN, TABLE_WISE_BY_SIZE, TORCHREC_GREEDY
from planner.output.explain.verdict import Comparison, Verdict

_EXACT = 1e-9  # rounding of sums
_LEAST_SHOWN = 1e-4
_AS_FAST = 5e-3  # difference below which two plans are as fast as each other
_LARGE = 2.0  # from which on a ratio has one decimal
_NAMES = {
    TORCHREC_GREEDY: ("the default (TorchRec's greedy, priced alike)", "the default (TorchRec's greedy)"),
    TABLE_WISE_BY_SIZE: ("whole tables, placed by size (priced alike)", "placing whole tables by size"),
    PREVIOUS_PLAN: ("the plan that runs now", "the plan that runs now"),
}


def verdict_text(verdict: Verdict) -> str:
    """Return the verdict in words; what is not known is left out, but for the bound."""
    parts = [*map(_comparison, verdict.comparisons), _distance(verdict.most_above_best)]
    if (phase := verdict.longest_phase) is not None:
        parts.append(f"{phase.share:.0%} of the time is {phase.name} (rank {phase.slowest_rank} is slowest)")
    if (prices := verdict.prices) is not None:
        parts.append(
            f"prices {prices.measured_share:.0%} measured,"
            f" -{max(prices.lower_fraction, 0.0):.0%} to +{max(prices.upper_fraction, 0.0):.0%}"
        )
    return "; ".join(parts)


def _distance(gap: float | None) -> str:
    if gap is None:
        return "how near the best plan is not known"
    if gap < _EXACT:
        return "no plan is faster"
    most = f"at most {gap:.2%}" if gap >= _LEAST_SHOWN else f"less than {_LEAST_SHOWN:.2%}"
    return f"{most} slower than the best possible plan"


def _comparison(comparison: Comparison) -> str:
    priced, named = _NAMES[comparison.name]
    if comparison.state == NO_PLAN:
        return f"{named} finds no plan that fits"
    if comparison.state != LEGAL or comparison.ratio is None:
        return f"{named} gives no plan that works"
    if abs(comparison.ratio - 1) < _AS_FAST:
        return f"as fast as {priced}"
    ratio, word = (comparison.ratio, "faster") if comparison.ratio > 1 else (1 / comparison.ratio, "slower")
    return f"{ratio:.1f}x {word} than {priced}" if ratio >= _LARGE else f"{ratio:.2f}x {word} than {priced}"
