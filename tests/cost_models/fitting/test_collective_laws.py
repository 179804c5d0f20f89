"""Fits of laws find the law that made the rows, judge themselves on unseen sizes, and refuse what is no measurement."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.fitting.collective_laws import fit_domain_law, fit_hosts_law
from cost_models.fitting.collective_rows import CollectiveRows, falling_steps
from cost_models.fitting.law_set import fit_law_set
from cost_models.measurements.json_rows import rows_from_json
from cost_models.measurements.schema import Measurements, joined
from cost_models.vocabulary import Evidence
from tests.support.cost_models.laws import domain_law, hosts_law

SIZES = 2.0 ** np.arange(9, 31)


def rows(ranks: list[int], per_host: list[int], seconds: list[np.ndarray], noise: float = 0.0) -> CollectiveRows:
    """Rows of all sizes for each number of ranks."""
    rng = np.random.default_rng(1)
    times = np.concatenate(seconds)
    return CollectiveRows(
        message_bytes=np.tile(SIZES, len(ranks)),
        num_ranks=np.repeat(np.array(ranks, dtype=np.float64), len(SIZES)),
        ranks_per_host=np.repeat(np.array(per_host, dtype=np.float64), len(SIZES)),
        seconds=times * np.exp(noise * rng.standard_normal(len(times))),
        library=np.full(len(times), "NCCL 2.29.2"),
    )


def in_domain(noise: float = 0.0, ranks: tuple[int, ...] = (2, 4, 8)) -> CollectiveRows:
    law = domain_law()
    seconds = [law.start_seconds(n) + SIZES * law.pace(SIZES, n) for n in ranks]
    return rows(list(ranks), list(ranks), seconds, noise)


def over_hosts(operation: str, cap: float, clusters: list[tuple[int, int]]) -> CollectiveRows:
    law = hosts_law(operation, cap)
    seconds = [law.whole_start_seconds(n, g) + SIZES * law.pace(SIZES, n, g) for n, g in clusters]
    return rows([n * g for n, g in clusters], [g for _, g in clusters], seconds)


def test_a_law_in_a_domain_is_found_at_sizes_and_groups_that_were_not_measured() -> None:
    measured = in_domain()
    seen = measured.of((np.arange(len(measured.seconds)) % 3 != 1) & (measured.num_ranks != 4))
    found = fit_domain_law(seen, "all_to_all", library="NCCL 2.29.2", source="a test bench")
    four = measured.of(measured.num_ranks == 4)
    predicted = found.start_seconds(4) + four.message_bytes * found.pace(four.message_bytes, 4)
    # 20 us for the first 100 kB bend between the candidates at 32 and 512 KiB.
    errors = np.abs(predicted / four.seconds - 1)
    assert np.mean(errors) < 0.07
    assert errors[-1] < 0.01
    assert (found.basis.ranks, found.basis.num_rows) == ((2, 8), len(seen.seconds))
    assert found.bus_bytes_per_second(np.array([2.0**30]), 8)[0] == pytest.approx(1e11, rel=0.02)


def test_intervals_hold_unseen_rows_and_grow_with_noise() -> None:
    exact = fit_domain_law(in_domain(), "all_to_all", library="x", source="a test bench").intervals
    noisy_rows = in_domain(noise=0.1)
    noisy = fit_domain_law(noisy_rows, "all_to_all", library="x", source="a test bench")
    assert noisy.intervals.sizes[-1].upper > exact.sizes[-1].upper + 0.05
    fresh = in_domain(noise=0.1, ranks=(2, 4, 8))
    fresh = replace(fresh, seconds=fresh.seconds * noisy_rows.seconds[::-1] / in_domain().seconds[::-1])
    inside = 0
    for size, n, seconds in zip(fresh.message_bytes, fresh.num_ranks, fresh.seconds, strict=True):
        predicted = noisy.start_seconds(int(n)) + size * noisy.pace(np.array([size]), int(n))[0]
        lower, upper = noisy.intervals.at(size, 0.0)
        inside += lower * predicted <= seconds <= upper * predicted
    assert inside > 0.7 * len(fresh.seconds)  # noise of two draws, twice the variance


def test_rows_of_another_runtime_give_their_scaling_and_not_their_start() -> None:
    """A runtime that takes 30 us more measured up to 64 ranks, the library itself up to 4."""
    other = in_domain(ranks=(4, 8, 16, 64))
    other = replace(other, seconds=other.seconds + 30e-6)
    own = in_domain(ranks=(2, 4))
    found = fit_domain_law(own, "all_to_all", library="NCCL", source="a test bench", others=other)
    assert found.start_seconds(64) == pytest.approx(73e-6, rel=0.1)
    assert found.bus_bytes_per_second(np.array([2.0**30]), 64)[0] == pytest.approx(1e11, rel=0.05)
    assert found.basis.ranks == (2, 4, 8, 16, 64)


@pytest.mark.parametrize("cap", [float("inf"), 3e10])
def test_a_ring_over_hosts_is_found_with_its_cards_hops_and_limit(cap: float) -> None:
    measured = over_hosts("all_gather", cap, [(2, 1), (4, 1), (2, 8), (4, 8)])
    found = fit_hosts_law(measured, "all_gather", library="NCCL", source="a test bench")
    assert found.nic_bytes_per_second == pytest.approx(1e10, rel=0.05)
    assert found.host_bytes_per_second == pytest.approx(cap, rel=0.05)
    assert found.hop_seconds == pytest.approx(4e-6, rel=0.1)
    assert found.hosts == (2, 4)


def test_an_all_to_all_over_hosts_is_found() -> None:
    measured = over_hosts("all_to_all", float("inf"), [(2, 1), (2, 4), (4, 8)])
    found = fit_hosts_law(measured, "all_to_all", library="NCCL", source="a test bench")
    assert found.nic_bytes_per_second == pytest.approx(1e10, rel=0.02)
    assert found.whole_start_seconds(8, 8) == pytest.approx(20e-6 + 56 * 4e-6, rel=0.1)


def test_large_messages_alone_take_their_start_from_another_law() -> None:
    measured = over_hosts("all_to_all", float("inf"), [(2, 8)])
    large = measured.of(measured.message_bytes >= 2**28)
    found = fit_hosts_law(large, "all_to_all", library="NCCL", source="a test bench", starts=hosts_law())
    assert found.whole_start_seconds(4, 8) == pytest.approx(hosts_law().whole_start_seconds(4, 8))
    assert found.basis.evidence is Evidence.ESTIMATED
    assert found.basis.source == f"a test bench; start of other machines: {hosts_law().basis.source}"
    assert found.intervals.at(2.0**20, 0.0) == (0.5, 2.0)
    assert found.intervals.at(2.0**30, 0.0)[1] < 1.1
    own = fit_hosts_law(measured, "all_to_all", library="NCCL", source="a test bench")
    assert (own.basis.evidence, own.basis.source) == (Evidence.MEASURED, "a test bench")


def test_few_rows_that_fit_exactly_have_no_narrow_interval() -> None:
    """Three points show a card, a hop and a limit; without one of them a fit lacks a part, and judges nothing."""
    measured = over_hosts("all_gather", 3e10, [(10, 1), (10, 8)])
    size, per_host = measured.message_bytes, measured.ranks_per_host
    points = ((size == 2**30) & (per_host == 1)) | (((size == 2**25) | (size == 2**29)) & (per_host == 8))
    found = fit_hosts_law(measured.of(points), "all_gather", library="NCCL", source="a test bench")
    assert found.host_bytes_per_second == pytest.approx(3e10, rel=0.05)
    lower, upper = found.intervals.at(2.0**29, 0.0)
    assert 1.25 <= upper == pytest.approx(1 / lower)
    assert upper < 1.4


def test_intervals_hold_a_jump_on_either_side() -> None:
    """A protocol costs twice as much from 4 MiB on: which way a law errs hangs on the sizes it was fitted to."""
    jumping = in_domain()
    jumping = replace(jumping, seconds=jumping.seconds * np.where(jumping.message_bytes >= 2**22, 2.0, 1.0))
    found = fit_domain_law(jumping, "all_to_all", library="x", source="a test bench").intervals
    for one in found.sizes:
        assert one.lower == pytest.approx(1 / one.upper)
    assert found.at(2.0**21, 0.0)[1] > 1.1 > found.at(2.0**28, 0.0)[1]


def test_pairs_of_ranks_are_counted_in_all_to_alls_alone() -> None:
    """A ring has neighbours, however many ranks there are."""
    law = domain_law()
    ranks = (4, 8, 16, 32)
    seconds = [law.start_seconds(n) + 1e-8 * n * n + SIZES * law.pace(SIZES, n) for n in ranks]
    growing = rows(list(ranks), list(ranks), seconds)
    times = {
        operation: {term.times for term in fit_domain_law(growing, operation, library="x", source="a test bench").terms}
        for operation in ("all_to_all", "reduce_scatter", "all_gather", "all_reduce")
    }
    assert [name for name, found in times.items() if "pairs" in found] == ["all_to_all"]


def test_small_messages_alone_show_no_bandwidth() -> None:
    measured = over_hosts("all_to_all", float("inf"), [(2, 1)])
    constant = replace(measured.of(measured.message_bytes < 2**13), seconds=np.full(4, 5e-5))
    with pytest.raises(ValueError, match="too small to show a bandwidth"):
        fit_hosts_law(constant, "all_to_all", library="NCCL", source="a test bench")


def test_single_falling_steps_are_reported_and_falling_series_refused() -> None:
    measured = in_domain(ranks=(8,))
    dented = measured.seconds.copy()
    dented[3] *= 2
    assert list(falling_steps(measured, "all_to_all")) == []
    (text,) = falling_steps(replace(measured, seconds=dented), "all_to_all")
    assert "all_to_all of 8 ranks, NCCL 2.29.2: 1 of 21 steps fall by more than 20%; 8,192 bytes took" in text
    with pytest.raises(ValueError, match=r"11 of 21 steps fall .* not the times of one collective"):
        list(falling_steps(replace(measured, seconds=np.tile([2e-5, 1e-5], 11)), "all_to_all"))


def measurements(sizes: list[float], ranks: int = 8, per_host: int = 8, **changes: object) -> Measurements:
    law = domain_law()
    return rows_from_json(
        [
            {
                "kind": "collective",
                "launch": launch,
                "task": "t",
                "device": "d",
                "library": "nccl-tests 2.17",
                "implementation": "nccl",
                "num_ranks": ranks,
                "ranks_per_host": per_host,
                "operation": "all_to_all",
                "sent_bytes": size,
                "received_bytes": size,
                "seconds": law.start_seconds(ranks) + size * float(law.pace(np.array([size]), ranks)[0]),
                **changes,
            }
            for launch, size in enumerate(sizes)
        ]
    )


def test_laws_of_rows_are_inside_a_domain_up_to_its_ranks() -> None:
    sizes = [float(size) for size in SIZES]
    found, odd = fit_law_set(measurements(sizes), name="mine")
    assert ([law.operation for law in found.domain], found.hosts, odd) == (["all_to_all"], (), ())
    across = measurements(sizes, ranks=16, per_host=4)
    assert [law.hosts for law in fit_law_set(across, name="mine")[0].hosts] == [(4,)]
    assert fit_law_set(across, name="mine", domain_ranks=72)[0].domain[0].basis.ranks == (16,)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (joined([]), "no measured collectives"),
        (measurements([1e3, 1e6]), "2 sizes of messages do not show start and bandwidth; 4 do"),
        (measurements([1e3, 1e4, 1e5, 1e6], ranks=1, per_host=1, seconds=1e-5), "of one rank each"),
    ],
)
def test_rows_that_no_law_can_be_fitted_to_are_refused(found: Measurements, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_law_set(found, name="mine")


@pytest.mark.parametrize("domain_ranks", [3, 12])
def test_domains_that_end_inside_a_host_are_refused(domain_ranks: int) -> None:
    across = measurements([2.0**power for power in range(10, 28)], ranks=16, per_host=8)
    with pytest.raises(ValueError, match=f"^{domain_ranks} ranks of a domain are not whole hosts of 8 ranks each$"):
        fit_law_set(across, name="mine", domain_ranks=domain_ranks)
    assert fit_law_set(across, name="mine", domain_ranks=8)[0].hosts[0].hosts == (2,)


def over_pcie(ranks: tuple[int, ...]) -> CollectiveRows:
    """A server of two sockets: 20 us, 50 ps for a byte, and more of a third rank and of a fifth."""
    paces = [5e-11 * (n - 1) / n + 4e-11 * max(n - 2, 0) + 8e-11 * max(n - 4, 0) for n in ranks]
    return rows(list(ranks), list(ranks), [20e-6 + SIZES * pace for pace in paces])


def test_ranks_of_a_second_socket_cost_more() -> None:
    found = fit_domain_law(over_pcie((2, 4, 8)), "all_gather", library="x", source="a test bench")
    assert {"beyond_pair", "beyond_socket"} <= {term.times for term in found.terms}
    six = over_pcie((6,))
    predicted = found.start_seconds(6) + six.message_bytes * found.pace(six.message_bytes, 6)
    np.testing.assert_allclose(predicted, six.seconds, rtol=0.1)


def test_what_a_third_rank_costs_is_seen_in_two_groups_where_it_is_much() -> None:
    found = fit_domain_law(over_pcie((2, 4)), "all_gather", library="x", source="a test bench")
    np.testing.assert_allclose(found.pace(np.array([2.0**28]), 4), 5e-11 * 3 / 4 + 8e-11, rtol=0.02)
    np.testing.assert_allclose(found.pace(np.array([2.0**28]), 2), 5e-11 / 2, rtol=0.05)
    switched = fit_domain_law(in_domain(ranks=(2, 8)), "all_gather", library="x", source="a test bench")
    assert "beyond_pair" not in {term.times for term in switched.terms}
