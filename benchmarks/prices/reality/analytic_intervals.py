"""Makes the intervals of analytic models that ship, from public measurements:

``python benchmarks/prices/reality/analytic_intervals.py --data ../shared/measured_gpu`` writes
``cost_models/intervals/factors.json``.

Kernels: measured over predicted seconds of launches, public ones and those under ``benchmarks/measured``, by the
roofline model on shipped profiles, by what the launch does and by its lookups. Links: the same of collectives by a
profile's rates without its laws, by size. Numbers: how far rates of links lie from what they are rates of, all-to-alls
of 64 MiB and more of whole hosts. Evidence does not set the number: rates in a domain count as measured, and are off
the most.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.prices.reality import kernels
from benchmarks.prices.reality.collective_files import MeasuredCollective, read_folder
from benchmarks.prices.reality.platforms import laws_of
from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.tbe.predicted import MANY_LOOKUPS
from cost_models.collectives.collectives import Network
from cost_models.hardware.profiles_loader import load_profile
from cost_models.intervals.factors import COVERAGE

_WRITTEN = Path(__file__).parents[3] / "cost_models" / "intervals" / "factors.json"
_MEASURED = Path(__file__).parents[2] / "measured"
_SIZES = (0.0, 2.0**16, 2.0**20, 2.0**26)
#: The profile whose rates describe the platform of a set of laws.
_PROFILES = {
    "a100-ndv4": "azure-ndv4-a100-40g",
    "a100-nvswitch": "dgx-a100-80g",
    "h100-nvswitch": "dgx-h100-80g",
    "h200-nvswitch": "dgx-h200-141g",
    "b200-nvswitch": "dgx-b200-180g",
    "b300-nvswitch": "dgx-b300-270g",
    "gb200-nvl72": "gb200-nvl72",
    "gb300-nvl72": "gb300-nvl72",
    "h100-infiniband": "dgx-h100-80g",
    "aws-p5-efa": "aws-p5",
    "aws-p4de-efa": "aws-p4de",
    "gcp-a3-high-tcpx": "gcp-a3-high",
    "gb200-racks": "gb200-nvl72",
}
Kernel = tuple[str, float]  # what a launch does, and from how many lookups on


@dataclass(frozen=True, slots=True)
class ByRate:
    """A measured collective over what the rates of a profile say."""

    reach: str  # "domain" or "hosts"
    is_of_the_rate: bool  # whether the rate is stated for such collectives
    message_bytes: float
    ratio: float


def limits_of(ratios: Iterable[float]) -> tuple[float, float, int]:
    """Return between which factors a new ratio lies with the coverage, and of how many ratios.

    Order statistics with a margin for their number; of fewer than 19 ratios the smallest and the largest one. The
    prediction itself is never outside.
    """
    ordered = np.sort(np.fromiter(ratios, dtype=np.float64))
    tail = (len(ordered) + 1) * (1 - COVERAGE) / 2
    low = max(int(np.floor(tail)), 1) - 1
    high = len(ordered) - 1 - low
    return min(1.0, float(ordered[low])), max(1.0, float(ordered[high])), len(ordered)


def kernel_ratios(rows: Iterable[PredictedRow | LeftOutRow]) -> Mapping[Kernel, list[float]]:
    """Return measured over predicted seconds of the predicted launches, by what they do and their lookups."""
    found: dict[Kernel, list[float]] = defaultdict(list)
    for row in rows:
        if isinstance(row, LeftOutRow):
            continue
        direction = "forward" if "tbe forward" in row.groups else "backward"
        memory = "host" if "tbe host memory" in row.groups else "device"
        many = any(name.endswith(": a million lookups and more") for name in row.groups)
        kind = (f"{direction} {memory}", float(MANY_LOOKUPS) if many else 0.0)
        found[kind].append(row.measured_seconds / row.predicted_seconds)
    return found


def by_rates(folder: Path) -> Iterator[ByRate]:
    """Yield the collectives of platforms that a profile describes, by the rates of the profile alone."""
    for measured in read_folder(folder):
        name, is_own = laws_of(measured.platform, is_one_domain=measured.is_one_domain)
        if is_own and name in _PROFILES:
            yield _by_rate(measured, _PROFILES[name])


def _by_rate(measured: MeasuredCollective, profile: str) -> ByRate:
    hardware = replace(load_profile(profile), domain_laws={}, hosts_laws={})
    per_host = measured.num_ranks if measured.is_one_domain else measured.ranks_per_host
    if not measured.is_one_domain and hardware.domain_ranks:
        per_host = min(hardware.domain_ranks, measured.num_ranks)
    hardware = replace(hardware, domain_ranks=0)
    network = Network(hardware=hardware, num_ranks=measured.num_ranks, ranks_per_host=per_host)
    time = network.whole_seconds(measured.operation, "all", np.array([measured.message_bytes]))
    reach = "domain" if measured.is_one_domain else "hosts"
    whole = measured.operation == "all_to_all" and measured.num_ranks % hardware.ranks_per_host == 0
    is_of_the_rate = whole and measured.message_bytes >= _SIZES[-1]
    return ByRate(reach, is_of_the_rate, measured.message_bytes, measured.seconds / float(time.seconds[0]))


def document(folder: Path) -> dict[str, object]:
    """Return the intervals as the package ships them."""
    links = list(by_rates(folder))
    return {
        "coverage": COVERAGE,
        "source": "benchmarks/prices/reality/analytic_intervals.py over public measurements and benchmarks/measured",
        "kernels": [
            {"kind": kind, "from_lookups": lookups, **_entry(ratios)}
            for (kind, lookups), ratios in sorted(kernel_ratios(_launches(folder)).items())
        ],
        "links": [
            {"reach": reach, "from_bytes": start, **_entry(one.ratio for one in links if _is_in(one, reach, start))}
            for reach in ("domain", "hosts")
            for start in _SIZES
            if any(_is_in(one, reach, start) for one in links)
        ],
        "numbers": _error(one.ratio for one in links if one.is_of_the_rate),
    }


def _launches(folder: Path) -> Iterator[PredictedRow | LeftOutRow]:
    """Yield the launches of public series and our own."""
    for one in (folder, *sorted(path for path in _MEASURED.iterdir() if path.is_dir())):
        yield from kernels.rows(one)


def _is_in(one: ByRate, reach: str, start: float) -> bool:
    end = next((size for size in _SIZES if size > start), np.inf)
    return one.reach == reach and start <= one.message_bytes < end


def _entry(ratios: Iterable[float]) -> dict[str, float]:
    lower, upper, rows = limits_of(ratios)
    return {"lower": round(lower, 3), "upper": round(upper, 3), "rows": rows}


def _error(ratios: Iterable[float]) -> dict[str, float]:
    errors = np.expm1(np.abs(np.log(np.fromiter(ratios, dtype=np.float64))))
    return {"relative_error": round(float(np.quantile(errors, COVERAGE)), 3), "rows": len(errors)}


def main() -> None:
    """Write the intervals that ship."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of public measurements")
    parser.add_argument("--out", type=Path, default=_WRITTEN, help="file to write")
    arguments = parser.parse_args()
    text = json.dumps(document(arguments.data), indent=2)
    arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
