"""What the re-made planners are given: the peer's options, at our prices."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.inputs.convert_torchrec_golden import to_spec
from benchmarks.inputs.instances import meta_family, torchrec_family
from benchmarks.peers.peer_prices import columns_only, piece_costs, torchrec_options
from benchmarks.peers.peers import TORCHREC_RESULTS, neuroshard_remade, torchrec_remade


@pytest.mark.parametrize("name", ["dlrm_dcnv2_8", "dlrm_dcnv2_16", "synth_50_8", "synth_50_16"])
def test_torchrec_remade_at_our_prices_is_torchrec(shared: Path, name: str) -> None:
    """Ours differs from TorchRec's by the search alone: with its search our prices give its figure."""
    path = shared / "torchrec_golden" / f"{name}.instance.json"
    if not path.is_file():
        pytest.skip(f"no {path.name} in ../shared/torchrec_golden")
    found = torchrec_remade(60.0)(to_spec(json.loads(path.read_text()), time_limit_seconds=1.0))
    assert round(found.objective_seconds * 1e3, 4) == TORCHREC_RESULTS[name][0]
    assert not found.seconds_are_its_own


def test_torchrec_has_one_cut_per_scheme() -> None:
    spec = torchrec_family(num_tables=30, num_ranks=16, seed=0)
    tables, cluster = torchrec_options(spec)
    assert (cluster.num_ranks, cluster.num_hosts) == (16, 2)
    widths = [table["embedding_dim"] for table in spec["model"]["tables"]]
    assert {64, 256} <= set(widths)
    for width, options in zip(widths, tables, strict=True):
        shards = {option.scheme: len(option.seconds) for option in options}
        assert len(shards) == len(options)
        assert "grid_shard" not in shards
        assert shards["table_wise"] == 1
        assert shards["column_wise"] == shards["table_column_wise"] == (2 if width == 256 else 1)
        assert shards.get("row_wise", 16) == shards["data_parallel"] == 16
        assert shards.get("table_row_wise", 8) == 8
        by_scheme = {option.scheme: option for option in options}
        if width <= 128:  # TorchRec lists the whole table once more
            assert np.array_equal(by_scheme["column_wise"].seconds, by_scheme["table_wise"].seconds)


def test_halves_are_priced_as_column_pieces() -> None:
    spec = columns_only(meta_family(num_tables=12, num_ranks=8, fill=0.3, seed=0, objective="max_rank_time"))
    costs = piece_costs(spec)
    assert costs.num_ranks == 8
    assert costs.widths[:, 0].tolist() == [table["embedding_dim"] for table in spec["model"]["tables"]]
    exists = costs.widths > 0
    assert costs.widths[exists].min() == 4
    # a half costs less than the whole, and two halves no less than it
    for table, level in np.argwhere(exists[:, 1:]).tolist():
        whole, half = costs.seconds[table, level].sum(), costs.seconds[table, level + 1].sum()
        assert half < whole <= 2 * half * (1 + 1e-9)
    assert neuroshard_remade(spec).objective_seconds < np.inf


def test_a_table_that_may_not_be_cut_is_named() -> None:
    spec = meta_family(num_tables=3, num_ranks=8, fill=0.01, seed=0)
    with pytest.raises(ValueError, match=r"has no price for (8|16) columns"):
        piece_costs(spec)  # pieces of 32 columns are the narrowest unless a spec says otherwise
