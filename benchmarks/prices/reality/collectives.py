"""Public measurements of collectives against what the shipped laws predict, through the code that prices plans.

Of clusters that were measured pair by pair the coarse groups hold medians: of a summary file, or formed from the runs.
Every run is predicted too, in the group of single pairs (or nodes) alone, whose errors show how pairs scatter.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.prices.reality.cells import UNREADABLE
from benchmarks.prices.reality.collective_files import MeasuredCollective, read_rows
from benchmarks.prices.reality.medians import with_medians
from benchmarks.prices.reality.platforms import laws_of
from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from cost_models.collectives.collectives import Network
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.laws.law_set import LawSet
from cost_models.hardware.laws.shipped import load_law_set

ONE_DOMAIN, OVER_HOSTS = "collectives one domain", "collectives over hosts"
_SIZES = ((2**16, "<64 KiB"), (2**20, "<1 MiB"), (2**26, "<64 MiB"), (float("inf"), ">=64 MiB"))
#: Over hosts laws are asked for from here on; smaller messages have a group of their own next to the coarse one.
_OVER_HOSTS_BYTES = 32_000_000
#: GPUs of a rack of NVL72: what shares a domain where ranks of several racks take part.
_RACK_RANKS = 72


def rows(folder: Path) -> Iterator[PredictedRow | LeftOutRow]:
    """Yield every row of a collective that lies in the files of a folder, with its prediction, and those without."""
    measured: list[MeasuredCollective] = []
    for row in read_rows(folder):
        if isinstance(row, LeftOutRow):
            yield row
        else:
            measured.append(row)
    for one in with_medians(measured):
        try:
            yield predicted(one, load_law_set)
        except UNREADABLE as error:
            yield LeftOutRow(file=one.file, line=one.line, reason=f"not readable: {error}")


def predicted(measured: MeasuredCollective, load: Callable[[str], LawSet]) -> PredictedRow:
    """Return a row with what the laws of its platform say; the nearest laws where none are of the platform."""
    name, is_own = laws_of(measured.platform, is_one_domain=measured.is_one_domain)
    laws = load(name)
    operation, library = measured.operation, measured.library
    hardware = Hardware(profile=name, family="gpu", ranks_per_host=measured.ranks_per_host, numbers={})
    if measured.is_one_domain:
        law = laws.domain_law(operation, library) or load("h100-nvswitch").domain_law(operation)
        hardware = hardware.with_laws(LawSet(name=name, description="", domain=(law,) if law else ()))
        network = Network(hardware=hardware, num_ranks=measured.num_ranks, ranks_per_host=measured.num_ranks)
        beyond = law is None or measured.num_ranks > law.basis.ranks[-1]
        basis = None if law is None else law.basis
    else:
        if not laws.hosts:
            laws = load("h100-infiniband")
        if operation == "all_to_all" and laws.hosts_law(operation) is None:
            laws, is_own = load("h100-infiniband"), False
        hardware = hardware.with_laws(laws)
        per_host = _RACK_RANKS if name == "gb200-racks" else measured.ranks_per_host
        network = Network(hardware=hardware, num_ranks=measured.num_ranks, ranks_per_host=per_host)
        own = laws.hosts_law(operation)
        beyond = own is None or network.num_hosts > own.hosts[-1] or measured.num_ranks > own.basis.ranks[-1]
        basis = None if own is None else own.basis
    seconds = float(network.whole_seconds(operation, "all", np.array([measured.message_bytes])).seconds[0])
    interval = network.whole_interval(operation, "all", measured.message_bytes)
    return PredictedRow(
        groups=_groups(measured, is_own=is_own),
        file=measured.file,
        line=measured.line,
        platform=measured.platform if is_own else f"{measured.platform} (by the laws of {laws.name})",
        subject=f"{operation} of {measured.num_ranks} ranks, {measured.message_bytes:,.0f} bytes{_runs(measured)}",
        measured_seconds=measured.seconds,
        predicted_seconds=seconds,
        lower_seconds=None if interval is None else seconds * interval[0],
        upper_seconds=None if interval is None else seconds * interval[1],
        is_extrapolated=not is_own or beyond or basis is None or measured.message_bytes > basis.most_bytes,
    )


def _groups(measured: MeasuredCollective, *, is_own: bool) -> tuple[str, ...]:
    coarse = ONE_DOMAIN if measured.is_one_domain else OVER_HOSTS
    if measured.has_median:
        return (f"{coarse}: {_single(measured)}",)
    size = next(name for most, name in _SIZES if measured.message_bytes < most)
    found = [
        coarse,
        f"{coarse}: {measured.platform} {measured.operation}",
        f"{coarse}: {size}",
        f"{coarse}: {measured.num_ranks} ranks",
    ]
    if not measured.is_one_domain and measured.message_bytes >= _OVER_HOSTS_BYTES:
        found.append(f"{coarse}: >=32 MiB")
    if not is_own:
        found.append(f"{coarse}: platforms without laws of their own")
    return tuple(found)


def _single(measured: MeasuredCollective) -> str:
    hosts = measured.num_ranks // measured.ranks_per_host
    return {1: "single nodes", 2: "single pairs"}.get(hosts, "single runs")


def _runs(measured: MeasuredCollective) -> str:
    if measured.is_run:
        return f", one of the {_single(measured)}" if measured.has_median else ", one run"
    return f", median of {measured.num_runs} runs" if (measured.num_runs or 1) > 1 else ""
