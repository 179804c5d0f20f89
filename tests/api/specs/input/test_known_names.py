"""A name that is unknown: those that may be meant come first, whatever part of one was written."""

import pytest

from api.specs.input.known_names import names_hint, nearest_names
from cost_models.hardware.profiles_loader import profile_ids

KERNELS = ("dense", "fused", "fused_uvm", "fused_uvm_caching", "key_value")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("h100", ["dgx-h100-80g", "grand-teton-h100-roce"]),
        ("H100-80G", ["dgx-h100-80g"]),
        ("nvidia-h200-sxm", ["dgx-h200-141g"]),
        ("dgx-h10-80g", ["dgx-h100-80g"]),
        ("B200", ["dgx-b200-180g", "gb200-nvl72"]),
        ("abacus", []),
    ],
)
def test_profiles(name: str, nearest: list[str]) -> None:
    assert nearest_names(name, profile_ids())[: len(nearest) or 3] == nearest


@pytest.mark.parametrize(
    ("name", "nearest"), [("fusd", "fused"), ("FUSED", "fused"), ("uvm", "fused_uvm"), ("keyvalue", "key_value")]
)
def test_kernels(name: str, nearest: str) -> None:
    assert nearest_names(name, KERNELS)[0] == nearest


def test_all_known_names_follow() -> None:
    assert names_hint("fusd", KERNELS).startswith("did you mean fused")
    assert names_hint("fusd", KERNELS).endswith("? use one of dense, fused, fused_uvm, fused_uvm_caching, key_value")
    assert names_hint("xyz", ("dense",)) == "use one of dense"
    assert nearest_names("f" * 10**6, KERNELS) == []
