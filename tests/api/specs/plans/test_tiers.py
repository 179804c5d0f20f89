"""Shards without a memory tier lie where their kernel keeps rows."""

import pytest

from api.specs.parse import parse_evaluation
from cost_models.vocabulary import Tier
from planner.verification.verify import verify
from tests.support.service.specs import raw, tiny


@pytest.mark.parametrize(
    ("profile", "kernel", "tier"),
    [
        ("dgx-h100-80g", "fused", Tier.HBM),
        ("dgx-h100-80g", "fused_uvm", Tier.DDR),
        ("dgx-h100-80g", "fused_uvm_caching", Tier.DDR),
        ("dgx-h100-80g", "key_value", Tier.SSD),
        ("cpu-2s-genoa-200g", "fused", Tier.DDR),
    ],
)
def test_the_tier_of_a_shard_follows_from_its_kernel(profile: str, kernel: str, tier: Tier) -> None:
    table = {"name": "t", "num_embeddings": 100_000, "embedding_dim": 64, "pooling_factor": 1}
    spec = tiny(model__tables=[table], hardware={"profile": profile, "ranks_per_host": 1})
    shard = {"rank": 0, "row_offset": 0, "num_rows": 100_000, "column_offset": 0, "num_columns": 64}
    placed = {"name": "t", "sharding_type": "table_wise", "compute_kernel": kernel, "shards": [shard]}
    if kernel in ("fused_uvm_caching", "key_value"):
        placed["cache_load_factor"] = 0.1
    plan = {"world_size": 1, "ranks_per_host": 1, "tables": [placed]}
    request, given = parse_evaluation(raw({"spec": spec, "plan": plan}))
    assert given.placement.tables[0].shards.tier.tolist() == [tier]
    assert verify(request.problem, given.placement) == ()
