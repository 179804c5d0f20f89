"""What a stream of events says about a solve."""

from pydantic import Field

from api.schemas.base import Document, Moment
from api.schemas.solve import ProgressDocument, StateName


class ProgressEvent(ProgressDocument):
    """Data of an event ``progress``: a better plan, or a better bound, was found."""

    at_seconds: float = Field(description="Since the solve was started. Unit: seconds.", examples=[0.8])


class StateEvent(Document):
    """Data of an event ``state``: what a solve that has not ended is at."""

    state: StateName = Field(description="queued or running.", examples=["running"])
    started_at: Moment | None = Field(default=None, description="When a solver process took it.")
