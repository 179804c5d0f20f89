"""What leaving out repeated ids saves and takes under a plan, and how plans with and without compare."""

from dataclasses import dataclass

from planner.domain.plan.replicas import SizeState


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDedupLoad:
    """A plan with deduplication and without; seconds of its parts are those of every rank."""

    batch_ids: float  # of all sequences in a rank's batch
    unique_ids: float  # those left of them, summed over tables
    unique_seconds: float  # that finding them takes, in input_comm
    repeat_seconds: float  # of repeating the rows that come back, in forward_comm
    merge_seconds: float  # of adding up the gradients of repeats, in backward_comm
    objective_seconds_with: float
    objective_seconds_without: float

    @property
    def removed_share(self) -> float:
        """Share of the ids, and of the rows that cross, that is left out."""
        return 1.0 - self.unique_ids / self.batch_ids if self.batch_ids > 0 else 0.0

    @property
    def saved_seconds(self) -> float:
        """What the objective of the plan is lower by with deduplication; negative where that does not pay."""
        return self.objective_seconds_without - self.objective_seconds_with


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDedupSetting:
    """All plans with deduplication, or all without, as far as they were considered."""

    use_index_dedup: bool
    state: SizeState
    objective_seconds: float | None  # of the best plan; None if none was searched for
    lower_bound_seconds: float  # 0 where nothing is known
    detail: str = ""
