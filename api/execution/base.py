"""What the service asks of the engine that hands out its work, and what a runner of work is.

Guarantees of every engine
--------------------------
* What was submitted is run until its runner has returned from it, by one executor at a time and, where that one dies,
  by another. It may be run more than once: runners write what they come to in one transaction that says for which
  attempt it is.
* An engine carries the kind and the id of a work, and nothing else. What it is about, its state and its result are in
  the store, from which an engine that has lost everything is filled again (``unknown``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

SOLVES, FITS = KINDS = ("solves", "fits")


class Interrupted(BaseException):
    """The process ends; the work is not done, and will be run again.

    No ``Exception``, so that nobody on the way takes it for a failure of the work.
    """


class EngineUnavailable(Exception):
    """The engine cannot start; the message is for people."""


@dataclass(frozen=True, slots=True)
class Work:
    """Something to be run."""

    kind: str  # one of KINDS
    id: str


def fields_of(work: Work) -> dict[str, str]:
    """Return the fields of a line of the log that is about a work."""
    return {"solve_id" if work.kind == SOLVES else "fit_id": work.id}


class Runner(Protocol):
    """Runs works of one kind. Thread safe."""

    @property
    def num_slots(self) -> int:
        """How many works run at the same time."""
        ...

    def run(self, work_id: str) -> None:
        """Run one work to its end. Raises ``Interrupted`` where the process ends first."""
        ...


class SolveEngine(Protocol):
    """Hands works to the runners of this process, or of others that share its database. Thread safe."""

    def start(self) -> None:
        """Begin; take up what an earlier life of this executor left. Raises ``EngineUnavailable``."""
        ...

    def stop(self) -> None:
        """Wait for the runners, which have been told to stop, and let go."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether it hands out work."""
        ...

    def submit(self, work: Work, *, priority: int = 0) -> None:
        """Have something run; of a higher priority, -100 to 100, before others. Twice is once."""
        ...

    def unknown(self, works: Sequence[Work]) -> list[Work]:
        """Return those that are not going to be run, because nobody submitted them or their run was given up."""
        ...

    def recover(self, executor_id: str) -> int:
        """Have the works of an executor that is gone run again; return their number."""
        ...

    def forget(self, *, older_than_seconds: float) -> None:
        """Remove what is known of works that ended before."""
        ...
