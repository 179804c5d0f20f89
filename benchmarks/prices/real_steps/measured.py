"""What the ranks of a job timed: seconds of each plan, and how far chance moves them."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from benchmarks.prices.real_steps.models import StepModel
from cost_models.arrays import Floats

#: Of the steps of a plan. What else runs on the machine makes steps slower and never faster, so that early order
#: statistics say most of the plan; the least of all says most of luck.
QUANTILE = 0.1
_BUILD_SECONDS = 300.0  # at most, and for a round that was begun: 15 s on a quiet machine
_TRAINER = "import sys; from benchmarks.prices.real_steps.trainer import main; sys.exit(main(sys.argv[1]))"
_ROOT = Path(__file__).parents[3]


class TrainingFailed(Exception):
    """A rank failed, or did not end in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long and how often a model is trained."""

    world_size: int
    rounds: int  # at most
    steps: int  # of each plan in a round
    seconds: float  # of rounds, after which none begins
    phase_steps: int = 5  # of each plan, each phase alone; 0 times none
    collectives: int = 200  # of each kind, of few bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was timed of a model under its plans; P plans."""

    steps: Floats  # (rounds, steps, P) seconds of the slowest rank
    busy: Floats  # (rounds, steps, P) processor seconds of the busiest rank: work and no waiting
    phases: Sequence[Mapping[str, float]]  # of each plan: seconds of the slowest rank by phase, each timed alone
    collectives: Mapping[str, Floats]  # seconds of each repeat of the slowest rank, by operation, of few bytes
    build_seconds: float
    load: tuple[float, float]  # processes that ran or waited on the machine, mean of a minute, before and after

    @property
    def seconds(self) -> Floats:
        """Seconds of a step of each plan, shape (P,)."""
        return _early(self.steps)

    @property
    def busy_seconds(self) -> Floats:
        """Processor seconds of a step of each plan, shape (P,): what other work on the machine changes least."""
        return _early(self.busy)

    @property
    def halves(self) -> tuple[Floats, Floats]:
        """The same from every second round and from the others; of one round alone twice the same."""
        return _early(self.steps[::2]), _early(self.steps[1::2] if len(self.steps) > 1 else self.steps)

    @property
    def repeatability(self) -> float:
        """Kendall's tau between the halves: no prediction can be expected to order the plans better."""
        return tau(*self.halves)

    def noise(self, twins: Sequence[tuple[int, int]]) -> float:
        """Return how far two measurements of one plan lie apart, relative: the larger of two answers.

        One is the root mean square over plans from one half of the rounds to the other, the other the largest among
        ``twins``: equal plans that were built twice, with tables elsewhere in memory.
        """
        first, second = self.halves
        seconds = self.seconds
        return max(
            float(np.sqrt(np.mean(np.log(first / second) ** 2))),
            max((abs(float(np.log(seconds[one] / seconds[other]))) for one, other in twins), default=0.0),
        )


def tau(one: Floats, other: Floats) -> float:
    """Return Kendall's rank correlation; 0 where all are equal."""
    found = float(kendalltau(one, other).statistic)
    return 0.0 if np.isnan(found) else found


def measure(model: StepModel, plans: Sequence[Mapping[str, Any]], effort: Effort) -> Measured:
    """Train the model under the plans, documents of ours, on this machine.

    Raises
    ------
    TrainingFailed
        With what the ranks printed.
    """
    with tempfile.TemporaryDirectory(prefix="real-steps-") as folder:
        job = {
            **asdict(effort),
            "tables": [asdict(table) for table in model.tables],
            "samples": model.batch_size_per_rank,
            "plans": list(plans),
            "limit_seconds": effort.seconds + _BUILD_SECONDS,
        }
        path = Path(folder) / "job.json"
        path.write_text(json.dumps(job))
        before = os.getloadavg()[0]
        done = subprocess.run(
            [sys.executable, "-c", _TRAINER, str(path)], cwd=_ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise TrainingFailed(f"{model.name}: the ranks failed:\n{done.stdout[-1000:]}\n{done.stderr[-4000:]}")
        ranks = [json.loads((path.parent / f"{rank}.json").read_text()) for rank in range(effort.world_size)]
    steps, busy = np.max([rank["rounds"] for rank in ranks], axis=0).transpose(3, 0, 2, 1)
    return Measured(
        steps=steps,
        busy=busy,
        phases=[_slowest(of_plan) for of_plan in zip(*(rank["phases"] for rank in ranks), strict=True)],
        collectives={
            name: np.max([rank["collectives"][name] for rank in ranks], axis=0) for name in ranks[0]["collectives"]
        },
        build_seconds=max(rank["build_seconds"] for rank in ranks),
        load=(before, os.getloadavg()[0]),
    )


def _early(steps: Floats) -> Floats:
    found: Floats = np.quantile(steps.reshape(-1, steps.shape[-1]), QUANTILE, axis=0)
    return found


def _slowest(ranks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {phase: max(rank.get(phase, 0.0) for rank in ranks) for phase in {name for rank in ranks for name in rank}}
