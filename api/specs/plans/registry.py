"""The forms of plans that are rewritten as documents of ours; the shape of a plan shows its form (decision 0032)."""

from api.specs.plans.hugectr import is_hugectr, plan_of_hugectr
from api.specs.plans.planner_statistics import is_planner_statistics, plan_of_planner_statistics
from api.specs.plans.rewritten import PlannedJob, RewrittenPlan
from api.specs.plans.torchrec import is_torchrec, plan_of_torchrec


def is_foreign(content: object) -> bool:
    """Whether a plan, as parsed JSON, has a form of others; a text is what TorchRec's planner printed."""
    return isinstance(content, str) or is_torchrec(content) or is_hugectr(content)


def rewritten_plan(content: object, raw: bytes, job: PlannedJob) -> RewrittenPlan:
    """Return a plan of another form (:func:`is_foreign`) as a document of ours; ``raw`` is its JSON, unless a text.

    Raises
    ------
    RejectedDocument
        The plan is malformed, or says what cannot be of this job's tables and hosts.
    """
    if isinstance(content, str):
        return plan_of_planner_statistics(content, job)
    if is_hugectr(content):
        return plan_of_hugectr(raw, job)
    return plan_of_torchrec(raw, job)


def foreign_text(raw: bytes) -> str | None:
    """Return the text of a file that is no JSON but a plan as it was printed; ``None`` if it is none."""
    text = raw.decode("utf-8", errors="replace")
    return text if is_planner_statistics(text) else None
