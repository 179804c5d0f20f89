"""What a server has for each tenant."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from anyio.to_thread import run_sync

#: Tenants of whom parts are kept ready; of more, those that came last.
MAX_TENANTS = 1000

Part = TypeVar("Part")


class Tenants(Generic[Part]):
    """Makes the part of a tenant when somebody of it first comes. To be used in the event loop.

    Parts keep nothing that is not in the database or shared by all, so that one can be made again at any time.
    """

    def __init__(self, make: Callable[[str], Part], *, max_tenants: int = MAX_TENANTS) -> None:
        """``make`` may read and write the database."""
        self._make, self._max_tenants = make, max_tenants
        self._parts: OrderedDict[str, Part] = OrderedDict()

    def peek(self, tenant: str) -> Part | None:
        """Return a part that is there; never waits."""
        return self._parts.get(tenant)

    async def get(self, tenant: str) -> Part:
        """Return a part, made now where nobody came before."""
        found = self._parts.get(tenant)
        if found is None:
            found = await run_sync(self._make, tenant)
            self._parts[tenant] = found
            if len(self._parts) > self._max_tenants:
                self._parts.popitem(last=False)
        else:
            self._parts.move_to_end(tenant)
        return found
