"""Cost models by the name that a spec gives them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from cost_models.analytic.roofline import RooflineModel
from cost_models.analytic.serving import ServingModel
from cost_models.analytic.torchrec import TorchRecModel
from cost_models.errors import UnknownCostModel
from cost_models.protocol import CostModel

COST_MODELS: Mapping[str, Callable[[], CostModel]] = MappingProxyType(
    {"roofline": RooflineModel, "torchrec": TorchRecModel, "serving": ServingModel}
)


def cost_model_names() -> tuple[str, ...]:
    """Names of all cost models."""
    return tuple(COST_MODELS)


def make_cost_model(name: str) -> CostModel:
    """Return the cost model of this name; raises ``UnknownCostModel``."""
    if name not in COST_MODELS:
        raise UnknownCostModel(cost_model_names())
    return COST_MODELS[name]()
