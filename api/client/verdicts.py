"""What follows from a difference between a plan and a job: a new plan would help, or nothing but a person."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

#: ``go``: train under this plan. ``replan``: the model, the cluster or the free memory is no
#: longer what the plan was solved for, and a plan solved now would fit. ``refuse``: the plan
#: was changed or is wrong in itself, or the job's ranks disagree; a new plan would not help.
Verdict = Literal["go", "replan", "refuse"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason against a plan, with both values and the way out where it is not plain."""

    text: str
    verdict: Literal["replan", "refuse"]


#: A difference that a new plan would end, and one that it would not.
replan, refuse = partial(Difference, verdict="replan"), partial(Difference, verdict="refuse")


def verdict_of(differences: Iterable[Difference]) -> Verdict:
    """Return the gravest verdict among the differences; ``go`` where there is none."""
    found = {difference.verdict for difference in differences}
    return "refuse" if "refuse" in found else "replan" if "replan" in found else "go"


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ranks for people: ``rank 3``, ``ranks 0..7``, ``ranks 1, 3``."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]}..{ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks))}"
