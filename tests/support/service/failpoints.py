"""Points at which a server can be made to die: around each transaction that something hangs on.

A program that imports this module before it serves dies of ``kill -9`` at the point that ``SHARDPLAN_TEST_FAILPOINT``
names, such as ``accept:commit``: ``before`` the transaction, in the moment of its ``commit``, or ``after`` it.
"""

import functools
import os
import signal
import threading

from sqlalchemy import event
from sqlalchemy.engine import Engine

from api.execution.queue.dbos import DbosEngine
from api.store.database import Database, TenantStore
from api.store.webhooks import webhooks

MOMENTS = ("before", "commit", "after")
METHODS = {
    "accept": (TenantStore, "accept"),
    "submit": (DbosEngine, "submit"),
    "begin": (Database, "begin"),
    "incumbent": (Database, "save_incumbent"),
    "publish": (Database, "finish"),
    "promote": (TenantStore, "put_channel"),
    "enqueue": (webhooks, "_enqueue"),
    "delivered": (Database, "end_attempt"),
}
#: Parts of a transaction that others begin: the moments are before this part, and those of that transaction.
PARTS = ("enqueue",)
POINTS = [f"{name}:{moment}" for name in METHODS for moment in MOMENTS]


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str) -> None:
    """Die at a point."""
    name, _, moment = point.partition(":")
    owner, method = METHODS[name]
    original = getattr(owner, method)
    inside = threading.local()

    @functools.wraps(original)
    def watched(*arguments: object, **options: object) -> object:
        if moment == "before":
            _die()
        inside.it = True
        try:
            result = original(*arguments, **options)
        finally:
            inside.it = name in PARTS
        if moment == "after" and name not in PARTS:
            _die()
        return result

    setattr(owner, method, watched)

    @event.listens_for(Engine, "commit")
    def on_commit(_connection: object) -> None:
        if moment == "commit" and getattr(inside, "it", False):
            _die()

    @event.listens_for(Engine, "checkin")
    def on_return(_connection: object, _record: object) -> None:
        """The connection of a transaction that is over is given back."""
        if moment == "after" and name in PARTS and getattr(inside, "it", False):
            _die()
        inside.it = False


if os.environ.get("SHARDPLAN_TEST_FAILPOINT"):
    arm(os.environ["SHARDPLAN_TEST_FAILPOINT"])
