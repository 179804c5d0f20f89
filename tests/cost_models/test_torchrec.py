"""TorchRec's estimator: by hand, and against the numbers that TorchRec itself printed."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cost_models.errors import MissingHardwareNumber
from cost_models.profiles_loader import load_profile
from cost_models.protocol import CostModel, Floats
from cost_models.torchrec import TorchRecModel
from cost_models.vocabulary import Kernel, Phase, Scheme
from tests.contracts.cost_model import CostModelContract, without
from tests.cost_models.builders import plain_hardware, shard_work, table_shard

GOLDEN = Path(__file__).parents[2].parent / "shared" / "torchrec_golden"

PHASE_OF_PART = {
    "input_dist_comms": Phase.INPUT_COMM,
    "fwd_compute": Phase.FORWARD_COMPUTE,
    "fwd_comms": Phase.FORWARD_COMM,
    "bwd_comms": Phase.BACKWARD_COMM,
    "bwd_compute": Phase.BACKWARD_COMPUTE,
    "prefetch_compute": Phase.PREFETCH,
}


class TestContract(CostModelContract):
    def model(self) -> CostModel:
        return TorchRecModel()


def predict(scheme: Scheme, **more: Any) -> Floats:
    seconds: Floats = TorchRecModel().predict(table_shard(scheme, **more), plain_hardware()).seconds[0]
    return seconds


def test_input_communication_is_not_counted() -> None:
    assert [phase for phase in Phase if not TorchRecModel().counted_phases[phase]] == [Phase.INPUT_COMM]


def test_table_wise_by_hand() -> None:
    # 8 ranks, batch 1024, L = 10, 128 fp32 columns; 1 TB/s memory, 100 GB/s links.
    # input 1024 x 10 x 8 ranks x 8 B = 655,360; lookup 81,920 x 512 B = 41,943,040;
    # output 8,192 x 512 B = 4,194,304; forward 46,792,704 B -> 46.792704 us, backward twice that.
    seconds = predict(Scheme.TABLE_WISE)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx(46.792704e-6)
    assert seconds[Phase.BACKWARD_COMPUTE] == pytest.approx(93.585408e-6)
    assert seconds[Phase.FORWARD_COMM] == pytest.approx(4_194_304 / 1e11)
    assert seconds[Phase.BACKWARD_COMM] == pytest.approx(4_194_304 / 1e11)
    assert seconds[Phase.INPUT_COMM] == pytest.approx(655_360 / 1e11)
    assert seconds[Phase.PREFETCH] == 0


def test_narrow_weighted_columns_by_hand() -> None:
    # 16 columns are looked up as 32: lookup 81,920 x 128 B = 10,485,760; weighted ids count twice:
    # 1,310,720; output 8,192 x 64 B = 524,288; x 1.75 = 21.56134 MB; backward 3.1 x.
    seconds = predict(Scheme.TABLE_WISE, columns=16, is_weighted=True)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx((10_485_760 + 1_310_720 + 524_288) * 1.75 / 1e12)
    assert seconds[Phase.BACKWARD_COMPUTE] == pytest.approx(3.1 * seconds[Phase.FORWARD_COMPUTE])


def test_data_parallel_runs_over_network_cards_even_on_one_host() -> None:
    # 1e6 x 512 B; one host: (2 - 1)/1 / (8 x 10 GB/s) = 6.4 ms; kernels 9.22 x 0.512 GB / 0.5 TB/s = 9.44128 ms
    seconds = predict(Scheme.DATA_PARALLEL)
    assert seconds[Phase.BACKWARD_COMM] == pytest.approx(6.4e-3 + 9.44128e-3)
    assert seconds[Phase.FORWARD_COMM] == seconds[Phase.INPUT_COMM] == 0
    with pytest.raises(MissingHardwareNumber, match="inter_host_bytes_per_second"):
        TorchRecModel().predict(
            table_shard(Scheme.DATA_PARALLEL), without(plain_hardware(), "inter_host_bytes_per_second")
        )


@pytest.mark.parametrize(("num_ranks", "rounds"), [(8, 1.0), (16, 1.5), (24, 3.0)])
def test_data_parallel_over_hosts(num_ranks: int, rounds: float) -> None:
    # k = 1, 2, 2 hosts counted: (2k-1)/k = 1, 1.5, 1.5; doubled over more than two hosts
    seconds = predict(Scheme.DATA_PARALLEL, num_ranks=num_ranks)
    assert seconds[Phase.BACKWARD_COMM] - 9.44128e-3 == pytest.approx(6.4e-3 * rounds)


def test_comm_types_apply_by_direction() -> None:
    both = predict(Scheme.TABLE_WISE)
    quantised = predict(Scheme.TABLE_WISE, forward_comm_element_bytes=2.0, backward_comm_element_bytes=1.0)
    assert quantised[Phase.FORWARD_COMM] == pytest.approx(both[Phase.FORWARD_COMM] / 2)
    assert quantised[Phase.BACKWARD_COMM] == pytest.approx(both[Phase.BACKWARD_COMM] / 4)


@pytest.mark.parametrize("name", ["dlrm_dcnv2_8", "dlrm_dcnv2_16", "synth_50_16"])
def test_every_golden_shard_is_equal(name: str) -> None:
    path = GOLDEN / f"{name}.options.json.gz"
    if not path.is_file():
        pytest.skip(f"no TorchRec numbers beside the repository (expected {path.name} in shared/torchrec_golden)")
    with gzip.open(path) as stream:
        dump = json.load(stream)
    instance = json.loads((GOLDEN / f"{name}.instance.json").read_text())
    tables = {table["name"]: table for table in instance["tables"]}
    rows: list[dict[str, Any]] = []
    expected: list[list[float]] = []
    for table in dump["tables"]:
        spec = tables[table["name"]]
        ids = spec["pooling_factor"] * instance["batch_size"]
        for option in table["options"]:
            if option["kernel"] not in ("fused", "dense"):
                continue
            for shard in option["shards"]:
                rows.append(
                    {
                        "scheme": Scheme.from_label(option["sharding_type"]),
                        "kernel": Kernel.from_label(option["kernel"]),
                        "table_rows": spec["num_embeddings"],
                        "table_columns": spec["embedding_dim"],
                        "shard_rows": shard["size"][0],
                        "shard_columns": shard["size"][1],
                        "element_bytes": {"fp32": 4.0, "fp16": 2.0}[spec["data_type"]],
                        "batch_ids": ids,
                        "batch_outputs": instance["batch_size"],
                        "expected_outputs": min(1.0, spec["pooling_factor"]) * instance["batch_size"],
                    }
                )
                expected.append([shard["perf_parts"][part] / 1e3 for part in PHASE_OF_PART])
    columns: dict[str, Any] = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    work = shard_work(instance["world_size"], instance["local_world_size"], **columns)
    seconds = TorchRecModel().predict(work, load_profile("torchrec-default")).seconds
    assert len(rows) > 5 * len(tables)
    assert set(work.scheme) == set(Scheme) - {Scheme.GRID_SHARD}  # nobody named grid_shard in the dumps
    np.testing.assert_allclose(seconds[:, list(PHASE_OF_PART.values())], np.array(expected), rtol=1e-9)
