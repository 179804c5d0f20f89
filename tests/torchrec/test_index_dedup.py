"""Real TorchRec without repeated ids of sequences: it ends where the unsharded model ends, and sends what is priced."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from fbgemm_gpu.split_embedding_configs import EmbOptimType
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.mc_embedding import ManagedCollisionEmbeddingCollectionSharder
from torchrec.distributed.planner import Topology

from api.client import PlanRejected, UnsupportedModel, canonical_bytes, plan_digest
from api.client.index_dedup import embedding_collection_sharder_arguments, index_dedup_differences
from api.client.torchrec import ServicePlanner
from api.client.torchrec.sharders import uses_index_dedup
from api.specs.parse import parse_spec
from api.specs.plans.document import read_plan
from cost_models.vocabulary import Tier
from planner.pricing.placed_work import PlacedWork
from tests.support.thorough import thorough
from tests.support.torchrec.hand_plans import SEQUENCES, hand_plan
from tests.support.torchrec.harness import LEAST_MOVE, TOLERANCE, Case, outcomes, run_cases
from tests.support.torchrec.model import BATCH_SIZE_PER_RANK, NUM_STEPS, TableSpec, batches
from tests.support.torchrec.ranks import Model
from tests.support.torchrec.service_plans import forced_plan
from tests.support.torchrec.shakes import Shake

pytestmark = pytest.mark.torchrec

RANKS = 2
TABLES = SEQUENCES


def deduplicated(plan: Mapping[str, object]) -> dict[str, object]:
    bare = {**plan, "use_index_dedup": True}
    return {**bare, "plan_digest": plan_digest(bare)}


def ids_by_table() -> Iterator[tuple[str, int, int]]:
    """Every sequence table with the ids of a rank's batch and the distinct ones, of each step and rank."""
    for bags, _ in batches(TABLES, RANKS):
        for table in TABLES:
            if table.pooling != "none":
                continue
            for rank in range(RANKS):
                parts = [bags[table.module_path, feature].part(rank).ids for feature in table.features]
                ids = np.concatenate(parts)
                yield table.name, len(ids), len(np.unique(ids))


def received(plan: Mapping[str, object], name: str, folder: Path, shakes: Sequence[Shake] = ()) -> dict[str, int]:
    """Ids that reached lookups by sharding type, over all ranks and steps."""
    folder = folder / name
    folder.mkdir()
    case = Case(name=name, tables=TABLES, plan=plan, optimizer="sgd")
    found = run_cases([case], world_size=RANKS, ranks_per_host=RANKS, folder=folder, shakes=shakes)[name]
    assert found.largest < TOLERANCE
    assert found.misplaced == []
    assert min(found.moves.values()) > LEAST_MOVE
    counts = outcomes(name, RANKS, folder)
    return {kind: sum(one[kind] for one in counts) for kind in counts[0]}


def spec_of(setting: str) -> bytes:
    """The sequences of the batches as they were counted, on average over ranks and steps."""
    counted: dict[str, list[tuple[int, int]]] = {}
    for name, ids, unique in ids_by_table():
        counted.setdefault(name, []).append((ids, unique))
    tables = []
    for table in TABLES:
        given: dict[str, object] = {"pooling_factor": 1.0}
        if table.name in counted:
            ids, unique = np.mean(counted[table.name], axis=0)
            given = {
                "pooling_factor": ids / BATCH_SIZE_PER_RANK,
                "access": {"access_cdf": [[1, 1]], "distinct_rows": [[ids, unique]]},
            }
        size = {"num_embeddings": table.rows, "embedding_dim": table.columns}
        tables.append({"name": table.name, "pooling": table.pooling, "module_path": table.module_path, **size, **given})
    model = {"batch_size_per_rank": BATCH_SIZE_PER_RANK, "use_index_dedup": setting, "tables": tables}
    hardware = {"profile": "dgx-h100-80g", "ranks_per_host": RANKS}
    return json.dumps({"model": model, "hardware": hardware}).encode()


def priced(plan: Mapping[str, object], setting: str) -> dict[str, float]:
    """Lookups of sequences in all steps on all ranks as they are priced, by sharding type."""
    content = json.dumps(plan).encode()
    placement = read_plan(content, json.loads(content), device_tier=Tier.HBM).placement
    work = PlacedWork.of(parse_spec(spec_of(setting)).problem, placement)
    found: dict[str, float] = {}
    for kind, lookups in zip(work.kind.tolist(), work.lookups.tolist(), strict=True):
        table = placement.tables[work.table[kind]]
        if not work.work.is_pooled[kind]:
            found[table.sharding_type.label] = found.get(table.sharding_type.label, 0.0) + NUM_STEPS * lookups
    return found


def test_ids_are_exchanged_as_priced_and_training_is_the_same(tmp_path: Path) -> None:
    """Repeats within the batch of one rank are left out, those of two features of a table too, of two ranks not."""
    without = hand_plan(TABLES, RANKS, RANKS)
    all_ids = received(without, "all_ids", tmp_path)
    unique_ids = received(deduplicated(without), "unique_ids", tmp_path)
    assert priced(without, "off") == pytest.approx(all_ids)
    assert priced(deduplicated(without), "on") == pytest.approx(unique_ids)
    assert sum(unique_ids.values()) < 0.7 * sum(all_ids.values())  # 35 to 60 of 100 ids are left
    rows = {t.name: t.scheme for t in TABLES}
    of_rows = [(ids, unique) for name, ids, unique in ids_by_table() if rows[name] == "row_wise"]
    assert [all_ids["row_wise"], unique_ids["row_wise"]] == np.sum(of_rows, axis=0).tolist()


@thorough
def test_plans_of_the_planner_train_the_same(tmp_path: Path) -> None:
    """And every rank refuses the plan if the sharders of the job have the other setting."""
    plan = forced_plan(TABLES, RANKS, RANKS, use_index_dedup="on", optimizer="sgd")
    shakes = [
        Shake(name=f"shake_{used}", tables=TABLES, plan=plan, settings={"use_index_dedup": used})
        for used in (True, False)
    ]
    assert plan["use_index_dedup"] is True
    assert plan["index_dedup"]["batch_ids"] == plan["index_dedup"]["unique_ids"]  # nothing is known of repeats
    assert sum(received(plan, "planned", tmp_path, shakes).values()) > 0
    same, other = (outcomes(one.name, RANKS, tmp_path / "planned") for one in shakes)
    assert [one["verdict"] for one in same] == ["go"] * RANKS
    assert [one["verdict"] for one in other] == ["refuse"] * RANKS
    assert "make it with use_index_dedup=True" in other[1]["reasons"][0]


def test_the_sharders_of_a_job_are_compared_with_the_plan() -> None:
    model, plan = Model(list(TABLES)), hand_plan(TABLES, RANKS, RANKS)
    on, off = (EmbeddingCollectionSharder(use_index_dedup=used) for used in (True, False))
    assert [uses_index_dedup(model, [EmbeddingBagCollectionSharder(), one]) for one in (on, off)] == [True, False]
    assert uses_index_dedup(Model([SEQUENCES[0]]), [EmbeddingBagCollectionSharder(), on]) is None
    assert embedding_collection_sharder_arguments(plan) == {"use_index_dedup": False}
    assert embedding_collection_sharder_arguments(deduplicated(plan)) == {"use_index_dedup": True}
    assert index_dedup_differences(plan, None) == index_dedup_differences(plan, False) == []
    (found,) = index_dedup_differences(plan, True)
    assert "use_index_dedup=False" in found.text
    assert "model.use_index_dedup on" in found.text
    (found,) = index_dedup_differences(deduplicated(plan), False)
    assert "use_index_dedup=True" in found.text


def test_sequences_of_two_settings_are_refused() -> None:
    slots = TableSpec(
        name="slots",
        rows=40,
        columns=8,
        features=("z",),
        scheme="row_wise",
        pooling="none",
        module_path="sparse_arch.sequence_of_slots",
        slots=64,
    )
    sharders = [
        EmbeddingCollectionSharder(use_index_dedup=True),
        ManagedCollisionEmbeddingCollectionSharder(ec_sharder=EmbeddingCollectionSharder()),
    ]
    with pytest.raises(UnsupportedModel, match="one setting for all sequences"):
        uses_index_dedup(Model([SEQUENCES[1], slots]), sharders)


def test_the_service_plans_for_the_setting_of_the_sharders() -> None:
    fused = {"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD}
    sharders = [EmbeddingBagCollectionSharder(fused), EmbeddingCollectionSharder(fused, use_index_dedup=True)]
    asked: list[dict[str, Any]] = []

    def answer(spec: dict[str, Any]) -> bytes:
        asked.append(spec)
        return canonical_bytes(hand_plan(TABLES, RANKS, RANKS))

    topology = Topology(world_size=RANKS, local_world_size=RANKS, compute_device="cuda")
    planner = ServicePlanner(None, hardware="dgx-h100-80g", batch_size=8, topology=topology, local=answer)
    with pytest.raises(PlanRejected, match="has True; make it with use_index_dedup=False"):
        planner.plan(Model(list(TABLES)), sharders)
    assert asked[0]["model"]["use_index_dedup"] == "on"
    sharders[1] = EmbeddingCollectionSharder(fused)
    planner.plan(Model(list(TABLES)), sharders)
    assert "use_index_dedup" not in asked[1]["model"]
