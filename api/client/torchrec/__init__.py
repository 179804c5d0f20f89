"""Between the service's documents and a live TorchRec model. Needs torch and torchrec."""

from ..live_table import LiveTable
from .exchange import Handshake
from .facts import MemoryProbe, read_memory
from .handshake import handshake
from .loader import ServicePlanLoader
from .model import live_tables
from .phase_times import PhaseTimes
from .plan import to_sharding_plan
from .planner import ServicePlanner
from .spec import spec_from_model
from .written import plan_as_json

__all__ = [
    "Handshake",
    "LiveTable",
    "MemoryProbe",
    "PhaseTimes",
    "ServicePlanLoader",
    "ServicePlanner",
    "handshake",
    "live_tables",
    "plan_as_json",
    "read_memory",
    "spec_from_model",
    "to_sharding_plan",
]
