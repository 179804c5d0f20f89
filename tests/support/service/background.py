"""Work of the event loop that runs while a block runs, as the service runs it."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from anyio import create_task_group


@contextlib.asynccontextmanager
async def in_background(work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run ``work`` until the end of the block, where it is cancelled."""
    async with create_task_group() as group:
        group.start_soon(work)
        yield
        group.cancel_scope.cancel()
