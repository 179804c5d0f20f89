"""The extract of TorchRec's figures: small, complete, and what the full dumps say."""

import pytest

from benchmarks.peers.peers import TORCHREC_RESULTS
from cost_models.vocabulary import STEP_PHASES, Kernel, Scheme
from tests.support.golden.torchrec_golden import (
    FOLDER,
    INFEASIBLE,
    PHASE_OF_PART,
    PRESERVED_TABLES,
    SHARED,
    TORCHREC_MILLISECONDS,
    extract,
    golden_instance,
    golden_shards,
)


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 60_000


def test_instances_are_complete() -> None:
    """26 tables of DLRM-DCNv2, synthetic ones of 50 and 200, and one that cannot fit."""
    counts = {name: len(golden_instance(name).tables) for name in (*TORCHREC_MILLISECONDS, INFEASIBLE)}
    assert list(counts.values()) == [26, 26, 50, 50, 200, 50]
    reached = {name: golden_instance(name).torchrec_max_rank_milliseconds for name in counts}
    assert reached == TORCHREC_MILLISECONDS | {INFEASIBLE: None}
    assert {name: figure for name, (figure, _) in TORCHREC_RESULTS.items()} == TORCHREC_MILLISECONDS


@pytest.mark.parametrize("name", PRESERVED_TABLES)
def test_shards_cover_schemes_kernels_and_shapes(name: str) -> None:
    """TorchRec enumerates grid_shard only where a user names it, and nobody did."""
    shards, instance = golden_shards(name), golden_instance(name)
    assert {shard.scheme for shard in shards} == set(Scheme) - {Scheme.GRID_SHARD}
    assert {shard.kernel for shard in shards} == {Kernel.FUSED, Kernel.DENSE}
    assert any(shard.num_rows < instance.table(shard.table).num_embeddings for shard in shards)
    assert all(len(shard.seconds) == len(STEP_PHASES) for shard in shards)


def test_seconds_are_in_the_order_of_phases() -> None:
    assert tuple(PHASE_OF_PART.values()) == STEP_PHASES


@pytest.mark.skipif(
    not SHARED.is_dir(), reason="the full dumps are not next to the repository (shared/torchrec_golden)"
)
def test_it_is_what_the_full_dumps_say() -> None:
    """Made again with ``python -m tests.support.golden.torchrec_golden SOURCE_DIR``."""
    for file, text in extract(SHARED):
        assert (FOLDER / f"{file}.json").read_text() == text
