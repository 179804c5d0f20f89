"""What a plan document states at first glance: the verdict, and what the plan is compared with."""

from typing import Annotated, TypedDict

from planner.output.documents.field_example import Example


class BaselineDocument(TypedDict):
    """Another plan of the same problem, priced and checked as the plan itself."""

    name: Annotated[
        str,
        "torchrec_greedy: what TorchRec's planner makes of the same prices with its defaults; table_wise_by_size: whole"
        " tables, the largest first, each on the rank with the fewest bytes; or previous_plan: the plan that runs"
        " now.",
        Example("torchrec_greedy"),
    ]
    state: Annotated[
        str,
        "legal: a job can train with the plan; illegal: the plan breaks a rule or does not fit; no_plan: there is none;"
        " or not_made.",
        Example("legal"),
    ]
    objective_seconds: Annotated[
        float | None, "Of the same objective; null if there is no such plan. Unit: seconds.", Example(0.0124)
    ]
    ratio: Annotated[
        float | None, "objective_seconds over those of the plan; null where either is not known or 0.", Example(3.1)
    ]
    issue: Annotated[
        str | None, "Why there is no such plan, or what is wrong with the plan; null if a job can train with it."
    ]
    detail: Annotated[str | None, "How the plan was made, in words."]


class LongestPhaseDocument(TypedDict):
    """The phase that the objective has most of."""

    name: Annotated[str, "Phase.", Example("forward_comm")]
    share: Annotated[float, "Of the objective's phases.", Example(0.47)]
    slowest_rank: Annotated[int, "The rank that all wait for.", Example(3)]


class PriceErrorsDocument(TypedDict):
    """How well the prices of a plan are known."""

    measured_share: Annotated[
        float, "Of the seconds of all ranks: learned, or from measured numbers alone.", Example(0.61)
    ]
    lower_fraction: Annotated[float, "Of the objective, by which the plan may be faster.", Example(0.12)]
    upper_fraction: Annotated[float, "Of the objective, by which the plan may be slower.", Example(0.12)]


class PlanVerdictDocument(TypedDict):
    """How good a plan is, in words and figures."""

    text: Annotated[
        str,
        "The verdict in words.",
        Example(
            "3.1x faster than the default (TorchRec's greedy, priced alike); at most 1.40% slower than the best"
            " possible plan; 47% of the time is forward_comm (rank 3 is slowest); prices 61% measured, -12% to +12%"
        ),
    ]
    most_above_best: Annotated[
        float | None,
        "Fraction of the bound by which the plan may be slower; null if the bound says nothing.",
        Example(0.014),
    ]
    longest_phase: Annotated[LongestPhaseDocument | None, "null of a plan without counted seconds."]
    prices: Annotated[PriceErrorsDocument | None, "null if the cost model says nothing of its errors."]
