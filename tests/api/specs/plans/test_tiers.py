"""Shards without a memory tier lie where their kernel keeps rows."""

import pytest

from api.specs.parse import parse_evaluation, parse_spec
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


#: One table on the one rank of a host without accelerators, as TorchRec writes it.
OF_TORCHREC = {
    "plan": {
        "": {
            "t": {
                "sharding_type": "table_wise",
                "compute_kernel": "fused",
                "ranks": [0],
                "shards": [{"shard_offsets": [0, 0], "shard_sizes": [1000, 64], "placement": "rank:0/cpu"}],
            }
        }
    },
    "world_size": 1,
    "local_world_size": 1,
}


@pytest.mark.parametrize("hbm_bytes", [None, 0])
def test_plans_of_hosts_without_accelerators_lie_in_host_memory(hbm_bytes: float | None) -> None:
    """Also those in the form of others, and previous plans: they were read as if the host had HBM."""
    hardware = {"profile": "cpu-2s-genoa-200g", "ranks_per_host": 1}
    hardware |= {} if hbm_bytes is None else {"overrides": {"hbm_bytes": hbm_bytes}}  # type: ignore[dict-item]
    table = {"name": "t", "num_embeddings": 1000, "embedding_dim": 64, "pooling_factor": 1}
    spec = tiny(model__tables=[table], hardware=hardware)
    shard = {"rank": 0, "row_offset": 0, "num_rows": 1000, "column_offset": 0, "num_columns": 64}
    placed = {"name": "t", "sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard]}
    for plan in (OF_TORCHREC, {"world_size": 1, "ranks_per_host": 1, "tables": [placed]}):
        request, given = parse_evaluation(raw({"spec": spec, "plan": plan}))
        assert given.placement.tables[0].shards.tier.tolist() == [Tier.DDR]
        assert verify(request.problem, given.placement) == ()
        previous = parse_spec(raw({**spec, "previous_plan": {"plan": plan}})).previous
        assert previous is not None
        assert previous.placement.tables[0].shards.tier.tolist() == [Tier.DDR]
