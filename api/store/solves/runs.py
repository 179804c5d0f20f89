"""How solves are run, of whatever tenant they are, and what the service may rely on.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* ``finish`` publishes the plan and ends the solve together, for the tenant of the solve. The first publication of a
  plan digest wins there.
* Each ``begin`` of a solve is an attempt; what is written for an earlier one is left aside, so that an executor
  that was taken for dead and wakes up cannot disturb the one that took over.
"""

from typing import Protocol

from api.store.contract.store import Json, PlanRecord, SolveRecord


class SolveRunStore(Protocol):
    """Solves of all tenants, by their ids, which differ."""

    def any_solve(self, solve_id: str) -> SolveRecord | None:
        """Return a solve."""
        ...

    def begin(self, solve_id: str, *, executor_id: str, now: float) -> SolveRecord | None:
        """Start an attempt at a solve, and return it; ``None`` where it has ended or is not there."""
        ...

    def keep_incumbent(self, solve_id: str, *, attempt: int, document: bytes, progress: Json, now: float) -> None:
        """Keep the best plan so far of a running solve, and append an event, where this attempt is the last one."""
        ...

    def incumbent(self, solve_id: str) -> bytes | None:
        """Return the best plan so far."""
        ...

    def finish(
        self,
        solve_id: str,
        *,
        state: str,
        now: float,
        result: Json | None = None,
        error: Json | None = None,
        plan: PlanRecord | None = None,
        progress: Json | None = None,
        attempt: int | None = None,
    ) -> bool:
        """End a solve and publish its plan.

        False, and nothing happens, where it had ended already, or a later ``attempt`` than this was begun.
        """
        ...

    def release_solves(self, executor_id: str | None) -> int:
        """Queue the solves again that a dead executor left running, with their best plans; return their number.

        With ``None``, those of all executors.
        """
        ...

    def unended_solves(self) -> list[SolveRecord]:
        """Return the solves that wait or run, oldest first; their number is bounded by that of those that may wait."""
        ...
