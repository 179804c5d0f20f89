"""What a stream of events says about a solve."""

from datetime import datetime

from pydantic import Field

from api.schemas.base import Document
from api.schemas.solve import ProgressDocument, StateName
from api.schemas.timestamps import moment
from api.store.solves.records import SolveRecord


class ProgressEvent(ProgressDocument):
    """Data of an event ``progress``: a better plan, or a better bound, was found."""

    at_seconds: float = Field(description="Since the solve was started. Unit: seconds.", examples=[0.8])


class StateEvent(Document):
    """Data of an event ``state``: what a solve that has not ended is at."""

    state: StateName = Field(description="queued or running.", examples=["running"])
    started_at: datetime | None = Field(default=None, description="When a solver process took it.")

    @classmethod
    def of(cls, record: SolveRecord) -> "StateEvent":
        """Return the event of a record."""
        started = moment(record.started_at)
        return cls(state=record.state, started_at=started)
