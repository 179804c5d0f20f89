"""TorchRec's planner next to ours on models larger than device memory: the instances, and that both price alike."""

import json

import numpy as np
import pytest

from api.specs.parse import parse_spec
from benchmarks.peers import torchrec_tiers
from benchmarks.peers.peer_prices import priced_as_peer
from benchmarks.peers.torchrec_tiers import SETTINGS, our_plan, tiers_spec, torchrec_plan, torchrec_rating
from cost_models.vocabulary import Scheme
from tests.support.thorough import thorough


@pytest.mark.parametrize("name", SETTINGS)
def test_weights_are_so_many_times_the_memory_of_all_devices(name: str) -> None:
    spec = tiers_spec(name, num_tables=8, num_ranks=4, times=3.0, seed=1)
    problem = parse_spec(json.dumps(spec).encode()).problem
    memory = 4 * spec["hardware"]["overrides"]["hbm_bytes"]
    assert sum(table.weight_bytes for table in problem.tables) == pytest.approx(3.0 * memory)
    assert problem.pipeline == SETTINGS[name].pipeline
    assert all((table.access is not None) == SETTINGS[name].knows_accesses for table in problem.tables)


def test_the_same_seed_gives_the_same_instance() -> None:
    given = {"num_tables": 8, "num_ranks": 4, "times": 2.0}
    assert tiers_spec("share", seed=1, **given) == tiers_spec("share", seed=1, **given)
    assert tiers_spec("share", seed=1, **given) != tiers_spec("share", seed=2, **given)


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SETTINGS)
def test_torchrec_prices_each_of_its_options_as_ours_does(name: str) -> None:
    """Every option of TorchRec's, with caches of 0.2, is among ours with the same seconds and bytes."""
    pytest.importorskip("torchrec")
    spec = tiers_spec(name, num_tables=4, num_ranks=4, times=2.0, seed=1)
    theirs = torchrec_plan(spec, time_limit_seconds=1)
    _, families, priced = priced_as_peer(spec)
    counted = priced.phase_weight > 0
    of_shape = [families.families[family] for family in priced.shape_family]
    for table, options in enumerate(theirs.tables):
        for option in options:
            scheme = Scheme.from_label(option.scheme)
            if scheme in (Scheme.COLUMN_WISE, Scheme.TABLE_COLUMN_WISE) and len(option.seconds) == 1:
                scheme = Scheme.TABLE_WISE  # TorchRec lists the whole table once more
            mine = [i for i, family in enumerate(of_shape) if (family.table, family.scheme) == (table, scheme)]
            seconds = priced.shape_seconds[np.ix_(mine, np.flatnonzero(counted))].sum(axis=1)
            held = priced.shape_bytes[mine][:, :2]
            equal = np.isclose(seconds, option.total_seconds()[0], rtol=1e-6, atol=0.0)
            assert np.any(equal & np.all(np.isclose(held, option.bytes[0], rtol=1e-6, atol=1.0), axis=1)), option


@thorough
@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SETTINGS)
def test_torchrec_rates_our_plan_as_ours_does(name: str) -> None:
    """And finds room for it, and none where there is less."""
    pytest.importorskip("torchrec")
    spec = tiers_spec(name, num_tables=8, num_ranks=8, times=3.0, seed=2)
    found = our_plan(spec, time_limit_seconds=3.0)
    assert found is not None
    rating = torchrec_rating(spec, found)
    assert rating.fits
    assert rating.max_rank_seconds == pytest.approx(found.evaluation.objective_seconds, rel=1e-9)
    hardware = spec["hardware"]
    small = spec | {"hardware": hardware | {"overrides": hardware["overrides"] | {"hbm_bytes": 2**28}}}
    assert not torchrec_rating(small, found).fits


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
def test_command_runs_both(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torchrec")
    arguments = "--setting statistics --tables 4 --ranks 4 --times 2 --time-limit 2 --peer-time-limit 5"
    assert torchrec_tiers.main(arguments.split()) == 0
    heading, row, summary = capsys.readouterr().out.strip().splitlines()
    assert len(heading.split()) == len(row.split()) + 2  # "TorchRec ms" and "ours ms" are two words each
    assert row.startswith("statistics-t4-r4-x2-s0")
    assert summary.startswith("1 instances, 0 worse than TorchRec's")
