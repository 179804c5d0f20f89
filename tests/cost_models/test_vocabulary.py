"""Facts of schemes and kernels, against what other code makes of them."""

import numpy as np
import pytest

from cost_models.collectives.collective_bytes import exchanges_of
from cost_models.vocabulary import (
    IN_DEVICE_MEMORY,
    IN_HOST_MEMORY,
    IS_CACHED,
    IS_REPLICATED,
    ROUTES,
    Kernel,
    Phase,
    Route,
    Scheme,
    Tier,
)
from tests.support.cost_models.shard_work import table_shard


@pytest.mark.parametrize("scheme", Scheme)
def test_the_collectives_of_a_scheme_are_those_that_its_bytes_travel_through(scheme: Scheme) -> None:
    """On one host, where nothing travels between hosts."""
    run = {Phase.FORWARD_COMM: "", Phase.BACKWARD_COMM: ""}
    for exchange in exchanges_of(table_shard(scheme)):
        if exchange.phase in run:
            assert run[exchange.phase] == ""
            run[exchange.phase] = exchange.operation
    assert tuple(run.values()) == scheme.collectives


@pytest.mark.parametrize("scheme", Scheme)
def test_the_ranks_that_hold_a_piece_are_the_ranks_of_its_site(scheme: Scheme) -> None:
    """Three hosts of four ranks."""
    sites = [scheme.site(rank, 4) for rank in range(12)]
    assert set(np.bincount(sites).tolist()) == {scheme.num_holders(12, 4)}
    assert scheme.row_blocks(12, 4) == (scheme.num_holders(12, 4) if scheme.facts.cuts_rows else 1)


@pytest.mark.parametrize("scheme", Scheme)
def test_words_have_a_place_for_widths_if_columns_are_cut(scheme: Scheme) -> None:
    assert scheme.facts.words.count("{}") == scheme.facts.cuts_columns


def test_arrays_are_the_facts_by_code() -> None:
    assert [Scheme(code).label for code in np.flatnonzero(IS_REPLICATED)] == ["data_parallel"]
    assert [Route(code) for code in ROUTES.tolist()] == [scheme.route for scheme in Scheme]
    for kernel in Kernel:
        assert IN_DEVICE_MEMORY[kernel] == (kernel.tier(Tier.HBM) is Tier.HBM)
        assert IN_HOST_MEMORY[kernel] == (kernel.tier(Tier.HBM) is Tier.DDR)
        assert IS_CACHED[kernel] == kernel.facts.is_cached
