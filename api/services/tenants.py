"""What a server has for each tenant."""

import asyncio
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
        self._making: dict[str, asyncio.Task[Part]] = {}

    def peek(self, tenant: str) -> Part | None:
        """Return a part that is there; never waits."""
        found = self._parts.get(tenant)
        if found is not None:
            self._parts.move_to_end(tenant)
        return found

    async def get(self, tenant: str) -> Part:
        """Return a part, made now if no request came before."""
        found = self.peek(tenant)
        if found is not None:
            return found
        # Thousands of launchers may come in the instant after a start: one of them has it made.
        making = self._making.get(tenant)
        if making is None:
            making = self._making[tenant] = asyncio.create_task(self._made(tenant))
            making.add_done_callback(lambda _: self._making.pop(tenant, None))
        return await asyncio.shield(making)

    async def _made(self, tenant: str) -> Part:
        made = await run_sync(self._make, tenant)
        self._parts[tenant] = made
        if len(self._parts) > self._max_tenants:
            self._parts.popitem(last=False)
        return made
