"""What the service keeps of the processes that run solves and fits, and what it may rely on.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* Ages are counted by the database's own clock, so that those of the machines may differ.
* ``beat`` succeeds only for the life that has the id: a process that was taken for dead, and whose id another one
  took since, learns of it here.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorRecord:
    """A server or worker, as it was last seen."""

    id: str
    life: str  # differs for every start of a process
    host: str  # name of its machine, for people
    silent_seconds: float  # since it was last seen


class ExecutorStore(Protocol):
    """The processes that run solves and fits."""

    def enter_executor(self, executor_id: str, *, life: str, host: str) -> None:
        """Begin a life, in place of an earlier one of this id."""
        ...

    def beat(self, executor_id: str, *, life: str) -> bool:
        """Say that a life goes on; False where it has been ended, or another life has the id."""
        ...

    def silence_executor(self, executor_id: str, *, life: str) -> None:
        """Make a life look as if it had been silent for long, so that others take over what it left."""
        ...

    def executors(self) -> list[ExecutorRecord]:
        """Return all that have not been ended, by id."""
        ...

    def end_executor(self, executor_id: str, *, life: str) -> bool:
        """End a life; False where somebody else did, or another life has the id."""
        ...
