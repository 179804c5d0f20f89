"""Real TorchRec: modules of managed collisions and of processed features, described, planned and trained."""

import json
import logging
from typing import Any

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

import torch
from torch import nn
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.modules.feature_processor_ import PositionWeightedModuleCollection
from torchrec.modules.fp_embedding_modules import FeatureProcessedEmbeddingBagCollection
from torchrec.modules.hash_mc_evictions import HashZchEvictionConfig, HashZchEvictionPolicyName
from torchrec.modules.hash_mc_modules import HashZchManagedCollisionModule
from torchrec.modules.mc_embedding_modules import ManagedCollisionEmbeddingBagCollection
from torchrec.modules.mc_modules import (
    DistanceLFU_EvictionPolicy,
    LFU_EvictionPolicy,
    LRU_EvictionPolicy,
    ManagedCollisionCollection,
    MCHManagedCollisionModule,
)

from api.client import UnsupportedModel
from api.client.live_table import LiveHashTable
from api.client.torchrec import live_tables, spec_from_model
from api.client.torchrec.model import PLANNED, dense_parameters
from api.client.torchrec.sharders import _PLANNED
from api.specs.parse import parse_spec

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore")]

META = torch.device("meta")
HARDWARE = {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 4}


def bags(*names: str, is_weighted: bool = False, rows: int = 960) -> EmbeddingBagCollection:
    return EmbeddingBagCollection(
        tables=[
            EmbeddingBagConfig(name=name, num_embeddings=rows, embedding_dim=16, feature_names=[f"f_{name}"])
            for name in names
        ],
        is_weighted=is_weighted,
        device=META,
    )


def collisions(**modules: Any) -> ManagedCollisionEmbeddingBagCollection:
    inner = bags(*modules)
    return ManagedCollisionEmbeddingBagCollection(
        inner, ManagedCollisionCollection(modules, inner.embedding_bag_configs())
    )


def sorted_ids(policy: Any = None, **settings: Any) -> MCHManagedCollisionModule:
    return MCHManagedCollisionModule(
        zch_size=960,
        device=META,
        eviction_policy=policy or LFU_EvictionPolicy(),
        **{"eviction_interval": 5, "input_hash_size": 2**40, "input_hash_func": lambda ids, size: ids % size}
        | settings,
    )


def probed(**settings: Any) -> HashZchManagedCollisionModule:
    return HashZchManagedCollisionModule(**{"zch_size": 960, "device": META, "total_num_buckets": 8} | settings)


def hash_tables_of(module: nn.Module) -> dict[str, LiveHashTable | None]:
    return {table.name: table.hash_table for table in live_tables(nn.ModuleDict({"m": module}))}


def test_every_module_that_is_planned_has_a_sharder() -> None:
    assert set(PLANNED) == set(_PLANNED)


def test_modules_of_managed_collisions_say_how_ids_get_slots() -> None:
    config = HashZchEvictionConfig(features=["f"], single_ttl=24)
    found = hash_tables_of(
        collisions(
            lfu=sorted_ids(),
            lru=sorted_ids(LRU_EvictionPolicy(), eviction_interval=1),
            distance=sorted_ids(DistanceLFU_EvictionPolicy()),
            kept=probed(max_probe=64),
            aged=probed(
                eviction_policy_name=HashZchEvictionPolicyName.SINGLE_TTL_EVICTION,
                eviction_config=config,
                track_id_freq=True,
            ),
            recent=probed(
                eviction_policy_name=HashZchEvictionPolicyName.LRU_EVICTION,
                eviction_config=config,
                write_runtime_meta_dim=3,
            ),
        )
    )
    zch, mpzch = ({"mode": "zch"}, {"mode": "mpzch", "bucket_size": 120, "max_probe": 128})
    assert found == {
        "lfu": LiveHashTable(**zch, eviction="lfu", eviction_interval=5),
        "lru": LiveHashTable(**zch, eviction="lru", eviction_interval=1),
        "distance": LiveHashTable(**zch, eviction="distance_lfu", eviction_interval=5),
        "kept": LiveHashTable(**mpzch | {"max_probe": 64}, eviction="none"),
        "aged": LiveHashTable(**mpzch, eviction="single_ttl", metadata_bytes_per_slot=8),
        "recent": LiveHashTable(**mpzch, eviction="lru", metadata_bytes_per_slot=24),
    }


def test_a_model_with_managed_collisions_becomes_a_spec_that_the_service_takes() -> None:
    model = nn.ModuleDict({"ids": collisions(a=sorted_ids(), b=probed()), "plain": bags("c")})
    spec = spec_from_model(
        model, batch_size_per_rank=64, hardware=HARDWARE, default_pooling_factor=2, optimizer="rowwise_adagrad"
    )
    tables = parse_spec(json.dumps(spec).encode()).problem.tables
    assert [(table.name, table.module_path, table.hash_table_mode) for table in tables] == [
        ("a", "ids", "zch"),
        ("b", "ids", "mpzch"),
        ("c", "plain", ""),
    ]
    assert "hash_table" not in spec["model"]["tables"][2]
    assert dense_parameters(model) == []


def test_what_is_no_known_module_is_refused_by_name() -> None:
    class Own(MCHManagedCollisionModule):
        """A module of the user's."""

    class Rarest(LFU_EvictionPolicy):
        """A policy of the user's."""

    own = Own(zch_size=960, device=META, eviction_policy=LFU_EvictionPolicy(), eviction_interval=1)
    with pytest.raises(UnsupportedModel) as caught:
        hash_tables_of(collisions(a=own, b=sorted_ids(Rarest())))
    assert caught.value.reasons == (
        'module "m": table "a" has a Own, which cannot be planned; only MCHManagedCollisionModule and'
        " HashZchManagedCollisionModule can",
        'module "m": table "b" has the eviction policy Rarest, of which the bytes are not known; known:'
        " LFU_EvictionPolicy, LRU_EvictionPolicy, DistanceLFU_EvictionPolicy",
    )


def test_ids_that_nothing_spreads_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        hash_tables_of(collisions(a=sorted_ids(), b=sorted_ids(input_hash_size=0, input_hash_func=None)))
        assert "input_hash_func" not in caplog.text
        hash_tables_of(collisions(c=sorted_ids(input_hash_func=None)))
    assert 'ids of table "c" go to ranks by the part of 0 to 1099511627776' in caplog.text


def test_processors_of_features_are_dense_and_their_tables_are_weighted() -> None:
    module = FeatureProcessedEmbeddingBagCollection(
        bags("a", "b", is_weighted=True), PositionWeightedModuleCollection({"f_a": 3, "f_b": 5})
    )
    model = nn.ModuleDict({"positions": module, "over": nn.Linear(32, 1, device=META)})
    assert [(one.name, one.module_path, one.is_weighted) for one in live_tables(model)] == [
        ("a", "positions", True),
        ("b", "positions", True),
    ]
    assert sum(one.numel() for one in dense_parameters(model)) == 3 + 5 + 33
