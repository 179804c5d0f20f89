"""How rows are kept: a share exactly where there is a cache, and the tier that follows from the kernel."""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Kernel, Tier
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.storage import Storage

FP32 = DATA_TYPES["fp32"]


def storage(kernel: Kernel, share: float | None = None) -> Storage:
    return Storage(kernel=kernel, data_type=FP32, cache_load_factor=share)


@pytest.mark.parametrize("kernel", Kernel)
def test_a_share_stands_exactly_where_there_is_a_cache(kernel: Kernel) -> None:
    wrong, right = (None, 0.5) if kernel.facts.is_cached else (0.5, None)
    assert storage(kernel, right).cache_load_factor == right
    with pytest.raises(ValueError, match="exactly where the kernel has a cache"):
        storage(kernel, wrong)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01, float("nan"), float("inf")])
def test_a_share_is_a_share(share: float) -> None:
    with pytest.raises(ValueError, match=r"cache_load_factor in \(0, 1\]"):
        storage(Kernel.KEY_VALUE, share)
    assert storage(Kernel.KEY_VALUE, 1.0).cache_load_factor == 1


@pytest.mark.parametrize(
    ("kernel", "tier"),
    [
        (Kernel.DENSE, None),
        (Kernel.FUSED, None),
        (Kernel.FUSED_UVM, Tier.DDR),
        (Kernel.FUSED_UVM_CACHING, Tier.DDR),
        (Kernel.KEY_VALUE, Tier.SSD),
    ],
)
@pytest.mark.parametrize("device", [Tier.HBM, Tier.DDR])
def test_the_kernel_says_where_rows_lie_and_else_the_device(kernel: Kernel, tier: Tier | None, device: Tier) -> None:
    preserved = storage(kernel, 0.1 if kernel.facts.is_cached else None)
    assert preserved.tier(device) is (device if tier is None else tier)


@pytest.mark.parametrize("kernel", Kernel)
def test_only_rows_that_are_read_from_the_host_by_the_byte_lie_in_storage_class_memory(kernel: Kernel) -> None:
    preserved = storage(kernel, 0.1 if kernel.facts.is_cached else None)
    if kernel.facts.reads_host_memory:
        assert replace(preserved, in_scm=True).tier(Tier.HBM) is Tier.SCM
    else:
        with pytest.raises(ValueError, match="by the byte"):
            replace(preserved, in_scm=True)
