"""What a learned model says of itself, as parts of a plan document."""

from dataclasses import asdict

from planner.domain.plan.plan import Prediction, Surrogate

MOST_FALLBACKS = 50


def prediction_document(prediction: Prediction | None) -> dict[str, object] | None:
    """Return ``prediction`` of a plan document; of the fallbacks at most ``MOST_FALLBACKS``."""
    if prediction is None:
        return None
    return {
        "coverage": prediction.coverage,
        "lower_seconds": prediction.lower_seconds,
        "upper_seconds": prediction.upper_seconds,
        "shares": {
            "learned": prediction.learned_share,
            "measured": prediction.measured_share,
            "analytic": prediction.analytic_share,
        },
        "num_fallbacks": len(prediction.fallbacks),
        "fallbacks": [asdict(one) for one in prediction.fallbacks[:MOST_FALLBACKS]],
        "analytic_phases": [{"phase": one.phase.label, "reason": one.reason} for one in prediction.analytic_phases],
    }


def surrogate_document(surrogate: Surrogate | None) -> dict[str, object] | None:
    """Return ``surrogate`` of a plan document."""
    return None if surrogate is None else asdict(surrogate)
