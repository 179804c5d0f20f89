"""The reshard map of two plans, as the service answers it."""

from pydantic import RootModel

from api.schemas.described import Defined
from planner.output.reshard.document import RankReadsDocument, ReshardDocument


class ReshardMapDocument(RootModel[Defined[ReshardDocument]]):
    """Which rank of a plan reads which bytes of a checkpoint of another plan."""


class RankReads(RootModel[Defined[RankReadsDocument]]):
    """What one rank of a plan reads of a checkpoint of another plan."""
