"""Between the service's documents and a live TorchRec model. Needs torch and torchrec."""

from .collective import collective_fetch
from .model import LiveTable, live_tables
from .plan import to_sharding_plan
from .spec import spec_from_model
from .written import plan_as_json

__all__ = ["LiveTable", "collective_fetch", "live_tables", "plan_as_json", "spec_from_model", "to_sharding_plan"]
