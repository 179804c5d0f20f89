"""Formats that a plan document can be written in, by the name that requests give them."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Protocol

from planner.output.exporters.context import ExportFacts
from planner.output.exporters.distributed_embeddings import to_distributed_embeddings
from planner.output.exporters.hugectr import to_hugectr
from planner.output.exporters.sparsecore import to_sparsecore
from planner.output.exporters.torcheasyrec import to_torcheasyrec
from planner.output.exporters.torchrec import to_torchrec
from planner.output.plan_document import PlanDocument


class Exporter(Protocol):
    """Writes a plan document for one runtime; raises ``UnexportablePlan`` where it cannot."""

    def __call__(self, document: PlanDocument, *, module_path: str | None, device: str) -> Mapping[str, object]:
        """Return the JSON document of the format.

        ``module_path`` is the embedding module of tables whose plan names none, ``device`` is
        ``cuda``, ``cpu`` or ``mtia``; a format that needs neither ignores them.
        """
        ...


def _as_it_is(document: PlanDocument, *, module_path: str | None, device: str) -> Mapping[str, object]:
    return document


EXPORTERS: Mapping[str, Exporter] = MappingProxyType(
    {
        "json": _as_it_is,
        "torchrec": to_torchrec,
        "torcheasyrec": to_torcheasyrec,
        "hugectr": to_hugectr,
        "distributed_embeddings": to_distributed_embeddings,
        "sparsecore": to_sparsecore,
    }
)

#: Exporters of formats that say more where facts are known beside the plan.
_BY_FACTS: Mapping[str, Callable[[ExportFacts], Exporter]] = MappingProxyType(
    {"sparsecore": lambda facts: partial(to_sparsecore, facts=facts)}
)


def reads_facts(export_format: str) -> bool:
    """Whether a format says more where facts are known beside the plan."""
    return export_format in _BY_FACTS


def exporter_of(export_format: str, facts: ExportFacts) -> Exporter:
    """Return the exporter of a format, which knows the facts if it reads any."""
    return _BY_FACTS[export_format](facts) if reads_facts(export_format) else EXPORTERS[export_format]
