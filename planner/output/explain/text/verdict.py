"""The verdict on a plan in a sentence or two."""

from planner.output.explain.verdict import Verdict

_EXACT = 1e-9  # rounding of sums
_LEAST_SHOWN = 1e-4


def verdict_text(verdict: Verdict) -> str:
    """Return the verdict in words; what is not known is left out, but for the bound."""
    parts = [_distance(verdict.most_above_best)]
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
