"""Real TorchRec: modules of managed collisions and of processed features, described, planned and trained."""

import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

import torch
from torch import nn
from torchrec.distributed.embedding_sharding import bucketize_kjt_before_all2all
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.mc_embeddingbag import ManagedCollisionEmbeddingBagCollectionSharder
from torchrec.distributed.sharding_plan import get_default_sharders
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.modules.feature_processor_ import PositionWeightedModuleCollection
from torchrec.modules.fp_embedding_modules import FeatureProcessedEmbeddingBagCollection
from torchrec.modules.hash_mc_evictions import HashZchEvictionConfig, HashZchEvictionPolicyName
from torchrec.modules.hash_mc_modules import HashZchManagedCollisionModule, TrainInputMapper
from torchrec.modules.mc_embedding_modules import ManagedCollisionEmbeddingBagCollection
from torchrec.modules.mc_modules import (
    DistanceLFU_EvictionPolicy,
    LFU_EvictionPolicy,
    LRU_EvictionPolicy,
    ManagedCollisionCollection,
    MCHManagedCollisionModule,
)
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from api.client import UnsupportedModel
from api.client.live_table import LiveHashTable
from api.client.torchrec import live_tables, spec_from_model
from api.client.torchrec.model import PLANNED, dense_parameters
from api.client.torchrec.sharders import _PLANNED, sharder_limits
from api.specs.parse import parse_spec
from tests.support.thorough import thorough
from tests.support.torchrec.harness import LEAST_MOVE, TOLERANCE, Case, run_cases
from tests.support.torchrec.model import TableSpec
from tests.support.torchrec.service_plans import forced_plan, free_plan

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


def test_sharders_of_torchrec_s_own_leave_every_choice() -> None:
    class OnDevice(ManagedCollisionEmbeddingBagCollectionSharder):
        """A sharder of the user's, with one kernel."""

        def compute_kernels(self, sharding_type: str, compute_device_type: str) -> list[str]:
            return ["fused"]

    model = nn.ModuleDict({"ids": collisions(a=sorted_ids()), "plain": bags("c")})
    assert sharder_limits(model, get_default_sharders(), "cuda") == {}
    own = [OnDevice(), EmbeddingBagCollectionSharder()]
    assert sharder_limits(model, own, "cuda") == {"ids": {"compute_kernels": ["fused"]}}
    with pytest.raises(UnsupportedModel, match='module "ids": no sharder is given for ManagedCollisionEmbedding'):
        sharder_limits(model, [EmbeddingBagCollectionSharder()], "cuda")


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


def test_the_example_of_the_page_prints_what_stands_below_it(root: Path, environment: dict[str, str]) -> None:
    page = (root / "docs" / "hash-tables.md").read_text()
    (found,) = re.findall(r"^```python\n(.*?)^```$\n\n^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    code, printed = found
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == printed


@pytest.mark.parametrize(("world_size", "buckets"), [(2, 4), (4, 4), (4, 12), (3, 6)])
@pytest.mark.parametrize("hash_size", [0, 1000, 2**40])
def test_probed_ids_go_to_the_rank_of_their_bucket(world_size: int, buckets: int, hash_size: int) -> None:
    """TorchRec deals ids out by bucket; their slots lie in the block of rows that a plan gives to that rank."""
    slots = 120 * buckets
    ids = torch.randint(0, hash_size or 2**50, (500,), generator=torch.Generator().manual_seed(5))
    sent, _ = bucketize_kjt_before_all2all(
        KeyedJaggedTensor(keys=["f"], values=ids, lengths=torch.ones(len(ids), dtype=torch.int64)),
        num_buckets=world_size,
        block_sizes=torch.tensor([-(-hash_size // buckets)]),
        total_num_blocks=torch.tensor([buckets]),
        output_permute=True,
        bucketize_pos=False,
        keep_original_indices=True,
    )
    rank = sent.lengths().view(world_size, -1).argmax(dim=0)
    first = torch.arange(buckets + 1) * 120
    mapper = TrainInputMapper(hash_size, buckets, torch.diff(first), first[:-1])
    _, sizes, slot = mapper(ids.clone())
    block = slots // world_size
    assert torch.equal(slot // block, rank)
    assert torch.equal((slot + sizes - 1) // block, rank)


#: Tables whose ids get slots as they come, cut by rows; 3 ranks have blocks of 54, 54 and 52 slots of ``clicked``.
OF_SLOTS = (
    *(
        TableSpec(
            name=name,
            rows=rows,
            columns=columns,
            features=features,
            scheme="row_wise",
            pooling=pooling,
            module_path=path,
            slots=slots,
        )
        for name, rows, columns, features, pooling, path, slots in (
            ("clicked", 50, 8, ("a", "b"), "sum", "sparse_arch.bags_of_slots", 160),
            ("bought", 30, 12, ("c",), "mean", "sparse_arch.bags_of_slots", 97),
            ("seen", 40, 8, ("d",), "none", "sparse_arch.sequence_of_slots", 130),
        )
    ),
    TableSpec(name="plain", rows=40, columns=8, features=("e",), scheme="table_wise"),
)
#: Tables whose ids get trained weights of their positions, under every scheme.
PROCESSED = tuple(
    TableSpec(
        name=f"processed_{scheme}",
        rows=rows,
        columns=16,
        features=(f"p_{scheme}",),
        scheme=scheme,
        kernel="dense" if scheme == "data_parallel" else "fused",
        module_path="sparse_arch.processed",
    )
    for scheme, rows in (("table_wise", 31), ("column_wise", 23), ("row_wise", 77), ("data_parallel", 20))
)


@pytest.mark.parametrize("world_size", [2, pytest.param(3, marks=thorough)])
def test_plans_train_like_the_unsharded_model(world_size: int, tmp_path: Path) -> None:
    """Ids get a slot of their own at once, so that which slot it is makes no difference."""
    cases = [
        Case(name=name, tables=tables, plan=make_plan(tables, world_size, world_size), optimizer="sgd")
        for name, tables, make_plan in (
            ("slots", OF_SLOTS, free_plan),
            ("processed", PROCESSED, forced_plan),
            ("processed_free", PROCESSED, free_plan),
        )
    ]
    modes = {table["name"]: table.get("hash_table_mode") for table in cases[0].plan["tables"]}
    assert modes == {"clicked": "zch", "bought": "zch", "seen": "zch", "plain": None}
    for name, difference in run_cases(cases, world_size=world_size, ranks_per_host=world_size, folder=tmp_path).items():
        assert difference.misplaced == [], name
        assert difference.largest < TOLERANCE, (name, difference)
        assert min(difference.moves.values()) > LEAST_MOVE, (name, difference.moves)
