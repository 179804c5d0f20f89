"""Handshakes that ranks do, and what each of them comes to."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from unittest import mock

from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

from api.client import ClientError, MemoryFacts, PlanRejected
from api.client.torchrec import Handshake, handshake, read_memory
from tests.support.torchrec.model import TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Shake:
    """A handshake: a model, a plan, and in what some ranks are unlike the others."""

    name: str
    tables: Sequence[TableSpec]
    plan: Mapping[str, object] | str | None  # the document, other text in its place, or None: rank 0 cannot load it
    from_files: bool = False  # every rank has the bytes, not rank 0 alone
    new_plan: Mapping[str, object] | str | None = None  # what ``replan`` brings; text: it raises that
    #: Arguments of ``handshake`` on all ranks; ``use_index_dedup`` stands for sharders with that setting.
    settings: Mapping[str, object] = field(default_factory=dict)
    #: By rank: ``tables``, ``plan``, ``environment``, ``settings``, ``free_bytes``, ``raises``.
    odd: Mapping[int, Mapping[str, object]] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """As the ranks read it."""
        return json.loads(json.dumps(asdict(self)))


def shake(document: dict, rank: int, model: type) -> dict[str, object]:
    """Do one handshake as one rank; returns its outcome."""
    odd = document["odd"].get(str(rank), {})
    tables = [TableSpec(**{**t, "features": tuple(t["features"])}) for t in odd.get("tables", document["tables"])]
    asked: list[str] = []

    def load() -> object:
        if odd.get("raises") == "type":
            return "text"
        plan = odd.get("plan", document["plan"])
        if plan is None:
            raise OSError("no route to the planner")
        return (plan if isinstance(plan, str) else json.dumps(plan)).encode()

    def replan(first: Handshake) -> bytes:
        asked.extend(first.reasons)
        if isinstance(document["new_plan"], str):
            raise TimeoutError(document["new_plan"])
        return json.dumps(document["new_plan"]).encode()

    def free_memory(device: str) -> MemoryFacts:
        if odd.get("raises") == "death":
            os._exit(0)
        if odd.get("raises") == "memory":
            raise RuntimeError("the driver is gone")
        if "free_bytes" not in odd:
            return read_memory(device)
        return MemoryFacts(
            device_pool=f"device {rank}",
            device_free_bytes=odd["free_bytes"],
            device_total_bytes=odd["free_bytes"],
            host_pool="host",
            host_free_bytes=1 << 40,
            host_total_bytes=1 << 40,
        )

    settings = document["settings"] | odd.get("settings", {})
    if "use_index_dedup" in settings:
        sequences = EmbeddingCollectionSharder(use_index_dedup=settings.pop("use_index_dedup"))
        settings["sharders"] = [EmbeddingBagCollectionSharder(), sequences]
    try:
        with mock.patch.dict(os.environ, odd.get("environment", {})):
            found = handshake(
                load() if document["from_files"] else load,
                module=None if odd.get("raises") == "model" else model(tables),
                device="cpu",
                replan=None if document["new_plan"] is None else replan,
                free_memory=free_memory,
                **settings,
            )
    except ClientError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    outcome = {
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "replanned": found.replanned,
        "warnings": list(found.warnings),
    }
    if asked:
        outcome["asked"] = asked
    try:
        return outcome | {"modules": sorted(found.sharding_plan().plan)}
    except PlanRejected as error:
        return outcome | {"error": f"{type(error).__name__}: {error}", "rejected_as": error.verdict}
