"""The best few plans of a search, and which heat to give the next one: what helped most so far."""

from dataclasses import dataclass

from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.problem import Assignment

_PLANS = 3


@dataclass(frozen=True, slots=True)
class ScoredPlan:
    """A plan of the pool."""

    seconds: float
    assignment: Assignment


class ElitePool:
    """At most three plans, no two of the same objective, the best first."""

    def __init__(self) -> None:
        self.plans: list[ScoredPlan] = []

    @property
    def seconds(self) -> float:
        """Objective of the best plan; infinite where there is none."""
        return self.plans[0].seconds if self.plans else float("inf")

    def add(self, chain: Chain) -> None:
        """Keep the best plan of a chain if it is among the best and unlike the others."""
        assignment = chain.assignment()
        if assignment is not None and all(known.seconds != chain.best_seconds for known in self.plans):
            self.plans.append(ScoredPlan(chain.best_seconds, assignment))
            self.plans.sort(key=lambda known: known.seconds)
            del self.plans[_PLANS:]


class TemperatureBandit:
    """Chooses among heats: each once, in the order given, then whichever gained most per round."""

    _UNTRIED_GAIN = 1e-4  # gain that a heat is credited with before it has been tried

    def __init__(self, temperatures: tuple[float, ...]) -> None:
        self._temperatures = temperatures
        self._gain = [self._UNTRIED_GAIN] * len(temperatures)
        self._rounds = [0] * len(temperatures)

    def choose(self) -> int:
        """Return the index of the next heat."""
        untried = [index for index, rounds in enumerate(self._rounds) if not rounds]
        if untried:
            return untried[0]
        return max(range(len(self._temperatures)), key=lambda index: self._gain[index] / self._rounds[index])

    def learn(self, index: int, gain: float) -> None:
        """Count a round and the part of the objective that it gained."""
        self._rounds[index] += 1
        self._gain[index] += gain

    def __getitem__(self, index: int) -> float:
        return self._temperatures[index]
