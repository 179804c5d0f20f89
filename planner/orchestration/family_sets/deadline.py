"""Deadlines of counted work: on a busy machine they end the work early and leave time for the next stage."""

import math
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Deadline:
    """A moment of the monotonic clock, by default never, that remembers whether it ended any work.

    Deadlines that are made from one another remember together.
    """

    until_seconds: float = math.inf
    _ended: list[float] = field(default_factory=list)  # moments at which work was ended

    @property
    def ended_work(self) -> bool:
        """Whether the clock ended work, so that the same spec may get another plan."""
        return bool(self._ended)

    def is_over(self) -> bool:
        """Whether the moment has come; call this only where work is left, since a late answer is remembered."""
        now = time.monotonic()
        if now >= self.until_seconds:
            self._ended.append(now)
        return now >= self.until_seconds

    @property
    def left_seconds(self) -> float:
        """Seconds until the moment; negative after it."""
        return self.until_seconds - time.monotonic()

    def after(self, part: float) -> "Deadline":
        """Return an earlier deadline, after this part of the time that is left."""
        return Deadline(time.monotonic() + part * max(self.left_seconds, 0.0), self._ended)
