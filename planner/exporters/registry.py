"""Formats that a plan document can be written in, by the name that requests give them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from planner.exporters.distributed_embeddings import to_distributed_embeddings
from planner.exporters.hugectr import to_hugectr
from planner.exporters.torchrec import to_torchrec


class Exporter(Protocol):
    """Writes a plan document for one runtime; raises ``UnexportablePlan`` where it cannot."""

    def __call__(self, document: Mapping[str, object], *, module_path: str | None, device: str) -> Mapping[str, object]:
        """Return the JSON document of the format.

        ``module_path`` is the embedding module of tables whose plan names none, ``device`` is
        ``cuda``, ``cpu`` or ``mtia``; a format that needs neither ignores them.
        """
        ...


def _as_it_is(document: Mapping[str, object], *, module_path: str | None, device: str) -> Mapping[str, object]:
    return document


EXPORTERS: Mapping[str, Exporter] = MappingProxyType(
    {
        "json": _as_it_is,
        "torchrec": to_torchrec,
        "hugectr": to_hugectr,
        "distributed_embeddings": to_distributed_embeddings,
    }
)
