"""What a cost model says of its own prediction, as text for people."""

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.plan import ObjectiveDocument
from planner.output.documents.search import PredictionDocument, SurrogateDocument
from planner.output.explain.text.layout import paragraph

_MOST_SHOWN = 4


def prediction_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the lines about the prediction, none where the cost model says nothing of its errors."""
    prediction, surrogate = plan.get("prediction"), plan.get("surrogate")
    lines = [] if prediction is None else _prediction(prediction, plan["objective"])
    if surrogate is not None:
        lines += _surrogate(surrogate)
    return ["Prediction", *lines] if lines else []


def _prediction(prediction: PredictionDocument, objective: ObjectiveDocument) -> list[str]:
    lower, upper = format_seconds(prediction["lower_seconds"]), format_seconds(prediction["upper_seconds"])
    shares, seconds = prediction["shares"], format_seconds(objective["seconds"])
    lines = paragraph(
        f"{objective['name']} {seconds}, {lower} to {upper} with every rank and phase at its own limit at once;"
        f" each of these holds {prediction['coverage']:.0%} of measurements"
    )
    learned = f"{shares['learned']:.0%} of the seconds are learned, " if shares["learned"] else ""
    of_seconds = "" if learned else " of the seconds"
    lines += paragraph(
        f"{learned}{shares['measured']:.0%}{of_seconds} rest on measured numbers, {shares['analytic']:.0%} on others"
    )
    if prediction["num_fallbacks"]:
        lines += paragraph("outside the measured range, priced by the analytic model:")
        for one in prediction["fallbacks"][:_MOST_SHOWN]:
            lines += paragraph(f"{one['table']} ({counted(one['num_shards'], 'shard')}): {one['reason']}")
        more = prediction["num_fallbacks"] - _MOST_SHOWN
        if more > 0:
            lines += paragraph(f"and {more} more")
    analytic = prediction.get("analytic_phases", [])
    if analytic:
        lines += paragraph("collectives that the analytic model prices:")
        for phase in analytic:
            lines += paragraph(f"{phase['phase']}: {phase['reason']}")
    return lines


def _surrogate(surrogate: SurrogateDocument) -> list[str]:
    gap = surrogate["relative_gap"]
    within = "" if gap is None else f", within {gap:.2%} of that model's bound"
    moved = surrogate.get("moved_shards", 0)
    then = f"; {counted(moved, 'shard')} then moved, as the learned model advised" if moved else ""
    return paragraph(
        f"found in search {surrogate['round']} of at most {surrogate['num_rounds']}, with an additive model under which"
        f" it takes {format_seconds(surrogate['seconds'])}{within}{then}"
    )
