"""How many bytes of request bodies a server holds: of all callers together, and of each."""

from collections import Counter

from api.http.middleware.decompression import RejectedBody

#: What a piece of a body takes at least, with the object around it: a body may come byte by byte.
_LEAST_PIECE_BYTES = 128


class BodyBudget:
    """Counts the bytes of bodies from when they come until their request is over. For the event loop alone."""

    def __init__(self, *, max_bytes: int, max_caller_bytes: int) -> None:
        self._max_bytes, self._max_caller_bytes = max_bytes, max_caller_bytes
        self._num_bytes = 0
        self._by_caller = Counter[str]()  # those that have none are not in it

    def check(self, caller: str, num_bytes: int) -> None:
        """Raise ``RejectedBody`` if so many bytes more would be too many."""
        if self._by_caller[caller] + num_bytes > self._max_caller_bytes:
            detail = f"this caller's bodies would take more than {self._max_caller_bytes} bytes at once"
            raise RejectedBody("caller-bodies-full", f"{detail} (SHARDPLAN_MAX_CALLER_BODIES_BYTES)")
        if self._num_bytes + num_bytes > self._max_bytes:
            detail = f"the bodies of all callers would take more than {self._max_bytes} bytes at once"
            raise RejectedBody("bodies-full", f"{detail} (SHARDPLAN_MAX_BODIES_BYTES)")

    def add(self, caller: str, num_bytes: int) -> None:
        self._num_bytes += num_bytes
        self._by_caller[caller] += num_bytes
        if not self._by_caller[caller]:
            del self._by_caller[caller]


class HeldBody:
    """What one request has in the budget."""

    def __init__(self, budget: BodyBudget, caller: str) -> None:
        self._budget, self._caller = budget, caller
        self._num_bytes = 0

    def expect(self, num_bytes: int) -> None:
        """Raise ``RejectedBody`` if a body of this length would be refused now; nothing is held for it."""
        self._budget.check(self._caller, num_bytes)

    def hold(self, piece: bytes) -> None:
        """Count a piece of the body. Raises ``RejectedBody``."""
        num_bytes = max(len(piece), _LEAST_PIECE_BYTES)
        self._budget.check(self._caller, num_bytes)
        self._budget.add(self._caller, num_bytes)
        self._num_bytes += num_bytes

    def release(self) -> None:
        """Hold nothing any more."""
        self._budget.add(self._caller, -self._num_bytes)
        self._num_bytes = 0
