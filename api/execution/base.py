"""Work that the service has an engine hand out, and what a runner of work is.

Guarantees of the engine
------------------------
* What was submitted is run until its runner has returned from it, by one executor at a time and, where that one dies,
  by another. It may be run more than once: runners write what they come to in one transaction that says for which
  attempt it is.
* It carries the kind and the id of a work, and nothing else. What it is about, its state and its result are in the
  store, from which an engine that has lost everything is filled again (``DbosEngine.unknown``).
"""

from dataclasses import dataclass
from typing import Protocol

SOLVES, FITS, STUDIES = KINDS = ("solves", "fits", "studies")
_FIELDS = {SOLVES: "solve_id", FITS: "fit_id", STUDIES: "study_id"}


class Interrupted(BaseException):
    """The process ends; the work is not done, and will be run again.

    No ``Exception``, so that no code on the way takes it for a failure of the work.
    """


class NotNow(Exception):
    """Nothing can run for a while, which says nothing about the work; the message is for people."""


class EngineUnavailable(Exception):
    """The engine cannot start; the message is for people."""


@dataclass(frozen=True, slots=True)
class Work:
    """Something to be run."""

    kind: str  # one of KINDS
    id: str


def fields_of(work: Work) -> dict[str, str]:
    """Return the fields of a line of the log that is about a work."""
    return {_FIELDS[work.kind]: work.id}


class Runner(Protocol):
    """Runs works of one kind. Thread safe."""

    @property
    def num_slots(self) -> int:
        """How many works run at the same time."""
        ...

    def run(self, work_id: str) -> None:
        """Run one work to its end. Raises ``Interrupted`` if the process ends first."""
        ...

    def stop(self) -> None:
        """Let ``run`` return or raise soon, because the process ends."""
        ...
