"""Groups of tables with more features and samples than an FBGEMM operator can count."""

import pytest

from api.specs.parse import parse_spec
from planner.errors import Issue
from planner.options.runtimes.torchrec.operator_limits import most_samples
from tests.support.service.specs import raw, tiny


def warnings(batch: int, *features: int, **changes: object) -> list[Issue]:
    """Of tables with so many features each on 8 ranks."""
    tables = [
        {
            "name": f"t{index}",
            "num_embeddings": 1000,
            "embedding_dim": 8,
            "module_path": f"m{index % 2}",
            "features": [{"name": f"f{index}_{one}", "pooling_factor": 0.001} for one in range(count)],
        }
        for index, count in enumerate(features)
    ]
    spec = tiny(model__tables=tables, model__batch_size_per_rank=batch, **changes)
    spec["hardware"] = {"profile": "dgx-h100-80g", "ranks_per_host": 8}
    return [one for one in parse_spec(raw(spec)).warnings if one.code == "operator-too-large"]


def test_features_of_one_module_are_counted_together() -> None:
    """300 features have 9 bits, and 8 x 2^20 samples 24: 23 are left, for 8,388,607 samples."""
    (warning,) = warnings(2**20, 200, 0 + 50, 100)
    assert warning.pointer == "/model/batch_size_per_rank"
    assert "300 features" in warning.message
    assert "at most 8388607 samples of all ranks in a step: there are 8388608" in warning.message
    assert warning.hint is not None
    assert "keep a rank to 255 features" in warning.hint
    assert most_samples(255) >= 2**23
    assert warnings(2**20, 200, 50, 55) == []
    assert warnings(2**20 - 1, 200, 50, 100) == []


def test_other_runtimes_have_other_operators() -> None:
    assert warnings(2**20, 200, 50, 100, runtime="generic") == []


@pytest.mark.torchrec
@pytest.mark.parametrize("num_features", [1, 2, 3, 63, 64, 65, 511, 512, 2**20])
def test_the_limit_is_fbgemm_s(num_features: int) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("fbgemm_gpu")
    most = most_samples(num_features)
    metadata = torch.ops.fbgemm.get_infos_metadata
    assert metadata(torch.empty(0), most, num_features)[1] == most
    if most < 2**31 - 1:  # the operation takes 32 bits with a sign
        with pytest.raises(RuntimeError, match="Not enough infos bits"):
            metadata(torch.empty(0), most + 1, num_features)
