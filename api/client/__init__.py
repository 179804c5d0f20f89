"""The launcher's client of the shardplan service.

Needs Python and httpx, nothing else; ``shardplan_client.torchrec`` additionally needs TorchRec.
"""

from .check import check_plan
from .client import TOKEN_VARIABLE, PlannerClient
from .documents import canonical_bytes, parse_plan, plan_digest
from .errors import (
    ClientError,
    DigestMismatch,
    NoPlan,
    NotPosted,
    NotTimed,
    PlanRejected,
    PlanUnavailable,
    ProblemError,
    SolveTimeout,
    UnexpectedAnswer,
    Unreachable,
    UnsupportedModel,
)
from .fetched import FetchedPlan, RankSlice, RankSliceDocument
from .memory import MemoryFacts
from .plan_file import PlanFile, fetch, read
from .plan_types import PlanDocument, ShardDocument, TableDocument
from .reshard_bands import Read
from .resharding import rank_reads
from .transport import RetryPolicy
from .verdicts import Verdict

__all__ = [
    "TOKEN_VARIABLE",
    "ClientError",
    "DigestMismatch",
    "FetchedPlan",
    "MemoryFacts",
    "NoPlan",
    "NotPosted",
    "NotTimed",
    "PlanDocument",
    "PlanFile",
    "PlanRejected",
    "PlanUnavailable",
    "PlannerClient",
    "ProblemError",
    "RankSlice",
    "RankSliceDocument",
    "Read",
    "RetryPolicy",
    "ShardDocument",
    "SolveTimeout",
    "TableDocument",
    "UnexpectedAnswer",
    "Unreachable",
    "UnsupportedModel",
    "Verdict",
    "canonical_bytes",
    "check_plan",
    "fetch",
    "parse_plan",
    "plan_digest",
    "rank_reads",
    "read",
]
