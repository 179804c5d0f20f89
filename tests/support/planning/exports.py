"""Plan documents in the form of a runtime, as tests ask for them."""

from functools import partial
from typing import Any, Protocol, cast

from planner.options.runtimes.export import ExportFacts
from tests.support.planning.long_plans import exported


class TestedExporter(Protocol):
    """An exporter of which a test gives what it is about."""

    def __call__(
        self, document: object, *, module_path: str | None = None, device: str = "cuda", facts: ExportFacts = ...
    ) -> dict[str, Any]:
        """Return the JSON document of the format."""
        ...


def exporter(runtime: str) -> TestedExporter:
    """Return the exporter of a runtime, for GPUs unless a test says otherwise."""
    return cast("TestedExporter", partial(exported, export_format=runtime, module_path=None, device="cuda"))
