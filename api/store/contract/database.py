"""All that is stored, and the way to what one tenant has: the contract of every database.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* A ``Store`` is of one tenant. What another tenant has is to it as if it were not there: it finds, lists, counts,
  changes and refers to nothing of it, and equal digests, names, versions and keys of requests do not meet.
* What is of all tenants together is in ``Database`` alone: for those who run their work, and for the command line.
  It finds nothing by a digest or a name, so that whoever holds it has to say of whom.
"""

from typing import Protocol

from api.store.access.keys import ApiKeyRecord, KeyVerificationStore
from api.store.contract.store import CountStore, Store
from api.store.maintenance.retention import RetentionStore
from api.store.models.records import ModelRecord
from api.store.solves.events import MarkStore
from api.store.solves.executors import ExecutorStore
from api.store.solves.runs import SolveRunStore
from api.store.webhooks.records import DeliveryStore


class Database(
    SolveRunStore,
    ExecutorStore,
    CountStore,
    MarkStore,
    KeyVerificationStore,
    DeliveryStore,
    RetentionStore,
    Protocol,
):
    """What all tenants have together."""

    def for_tenant(self, tenant: str) -> Store:
        """Return what one tenant has."""
        ...

    def unended_fits(self) -> list[ModelRecord]:
        """Return the fits that wait or run, oldest first."""
        ...

    def all_api_keys(self) -> list[ApiKeyRecord]:
        """Return the keys of all tenants, oldest first."""
        ...

    def ping(self) -> None:
        """Raise where the database cannot be read."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
