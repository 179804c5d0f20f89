"""Measurements and models that tests post to a service."""

from tests.support.service.live import Live
from tests.support.service.measured import benchmark_rows, model_document


def store_rows(live: Live, **changes: object) -> str:
    """Store rows of a benchmark; return their digest."""
    return str(live.post("/v1/measurements", {"rows": benchmark_rows(**changes)}).json()["measurements_digest"])


def upload(live: Live, name: str, **changes: object) -> dict[str, object]:
    """Post a model; return its version."""
    return live.post("/v1/cost-models", {"document": model_document(name, **changes)}).json()
