"""The numbers of a spec's hardware, and the pace of its links: docs/cost-models.md#communication."""

import json
import math
from dataclasses import dataclass
from typing import Any

from tests.support.paths import ROOT

_PROFILES = ROOT / "cost_models" / "hardware" / "profiles"
_SETS = ROOT / "cost_models" / "hardware" / "laws" / "sets"
_RINGS = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}


@dataclass(frozen=True)
class Machine:
    """Ranks, hosts, pods (or else hosts once more), and numbers."""

    world: int
    per_host: int
    hosts: int
    per_group: int
    groups: int
    numbers: dict[str, float]
    domain: int  # ranks that share links
    laws: dict[tuple[str, str], dict[str, Any]]  # by list and operation
    speeds: list[float]
    family: str

    @classmethod
    def of(cls, hardware: dict[str, Any]) -> "Machine":
        """Read the hardware of a spec."""
        profile = {"ranks_per_host": 8, "numbers": {}}
        if hardware["profile"] != "custom":
            profile = json.loads((_PROFILES / f"{hardware['profile']}.json").read_text(encoding="utf-8"))
        given = dict(hardware.get("overrides") or {})
        speeds, by_rank = given.pop("relative_speed_by_rank", None), given.pop("hbm_bytes_by_rank", None)
        numbers = {name: float(one["value"]) for name, one in profile["numbers"].items()}  # type: ignore[attr-defined]
        per_host = hardware.get("ranks_per_host") or profile["ranks_per_host"]
        parts = per_host / profile["ranks_per_host"]  # type: ignore[operator]
        if profile.get("family") == "cpu" and parts > 1:
            whole = [name for name in numbers if name.endswith(("_block_bytes", "_seconds")) and "_per_" not in name]
            numbers = {name: value if name in whole else value / parts for name, value in numbers.items()}
            numbers.setdefault("intra_host_bytes_per_second", numbers["ddr_bytes_per_second"] / 2)
        if given.get("host_link_bytes_per_second") is not None:
            for use in ("gather", "update", "cache"):
                numbers.pop(f"host_link_{use}_bytes_per_second", None)
        numbers |= {name: float(value) for name, value in given.items() if value is not None}
        if by_rank is not None:
            numbers["hbm_bytes"] = max(by_rank)
        hosts = hardware.get("num_hosts", 1)
        pod = hardware.get("pod_size")
        return cls(
            world=hosts * per_host,
            per_host=per_host,
            hosts=hosts,
            per_group=pod or per_host,
            groups=hosts * per_host // (pod or per_host),
            numbers=numbers,
            domain=pod or max(profile.get("domain_ranks", 0), per_host),  # type: ignore[call-overload]
            laws=_laws(profile, given),
            speeds=speeds or [1.0] * (hosts * per_host),
            family=str(profile.get("family", "custom")),
        )

    @property
    def has_accelerators(self) -> bool:
        """Whether rows are gathered in an accelerator's memory."""
        numbers = self.numbers
        return (
            "hbm_bytes_per_second" in numbers
            or numbers.get("hbm_bytes", 0) > 0
            or "ddr_bytes_per_second" not in numbers
        )

    @property
    def device(self) -> str:
        """The tier of the device's memory."""
        return "hbm" if self.numbers.get("hbm_bytes", 0) > 0 else "ddr"

    @property
    def memory_rate(self) -> float:
        """A of the page."""
        return self.numbers["hbm_bytes_per_second" if self.has_accelerators else "ddr_bytes_per_second"]

    @property
    def return_link(self) -> float:
        """L' of the page."""
        back = "host_link_return_bytes_per_second"
        return self.numbers[back if back in self.numbers else "host_link_bytes_per_second"]

    @property
    def is_gpu(self) -> bool:
        """Whether kernels are those of a GPU."""
        return self.has_accelerators and self.family in ("gpu", "custom")

    def whole(self, some_bytes: float) -> float:
        """g of the page."""
        return up_to(some_bytes, 32 if self.has_accelerators else 64)

    def of_gpu(self, name: str, otherwise: float) -> float:
        """Return a number of GPUs, 0 of other hardware."""
        return self.numbers.get(name, otherwise) if self.is_gpu else 0.0

    def reads(self, lookups: float, distinct: float, rows: float, row_bytes: float) -> float:
        """q of the page."""
        alike = lookups
        if distinct < rows:
            alike = min(lookups, -rows * math.log(1 - distinct / rows))
        held = min(1.0, self.of_gpu("l2_bytes", 40e6) / max(rows * self.whole(row_bytes), 1.0))
        return min(lookups, max(distinct, alike * (1 - held)))

    def gather_seconds(self, lookups: float, distinct: float, rows: float, row_bytes: float) -> float:
        """Q of the page."""
        x = self.whole(row_bytes)
        if not self.is_gpu:
            return lookups * x / self.memory_rate
        read = self.reads(lookups, distinct, rows, row_bytes)
        repeats = lookups - read
        in_l1 = repeats * min(1.0, 200e3 / max(rows * x, 1.0))
        own = read * self.of_gpu("lookup_seconds", 39.5e-12 * self.by_root) + repeats * self.of_gpu(
            "repeated_lookup_seconds", 13e-12
        )
        return max(read * x / self.memory_rate, (lookups - in_l1 + in_l1 / 3) * x / self.cache_rate, own)

    def gradient_seconds(self, lookups: float, gradients: float, row_bytes: float) -> float:
        """Q' of the page."""
        x = self.whole(row_bytes)
        if not self.is_gpu:
            return lookups * x / self.memory_rate
        read = self.reads(lookups, gradients, gradients, row_bytes)
        first = max(read * x / self.memory_rate, gradients * self.of_gpu("gradient_row_seconds", 134e-12))
        return first + (lookups - read) * x / self.cache_rate

    @property
    def by_root(self) -> float:
        """What times of rows of the memory are of an H100's."""
        return math.sqrt(2.57e12 / self.memory_rate)

    @property
    def cache_rate(self) -> float:
        """A' of the page."""
        return self.of_gpu("l2_bytes_per_second", 2.87 * self.memory_rate)

    def host_reads(self, lookups: float, distinct: float) -> float:
        """n'' of the page, of lookups of cold rows."""
        return distinct + 2 / 3 * max(lookups - distinct, 0.0) if self.is_gpu else lookups

    def link(self, use: str) -> float:
        """Lg, Lu, Lc or L of the page."""
        return self.numbers.get(f"host_link_{use}_bytes_per_second", self.numbers["host_link_bytes_per_second"])

    def pace(self, operation: str, group: str, message: float) -> float:
        """Return seconds per byte of a collective among all ranks, inside a group, or across groups."""
        inside, domains = self._domains(group)
        ranks = inside * domains
        paces = []
        if inside > 1:
            paces.append(self._inside(operation, inside, domains, message))
        if domains > 1:
            paces.append(self._over(operation, inside, domains, message))
        return max([one for one in paces if one is not None], default=0.0) if ranks > 1 else 0.0

    def start(self, operation: str, group: str) -> float:
        """Return the seconds of the start of a collective."""
        inside, domains = self._domains(group)
        if inside * domains == 1:
            return 0.0
        over = self._over_law(operation)
        starts = [0.0]
        if inside > 1 and ("domain", operation) in self.laws:
            law = self.laws["domain", operation]
            starts.append(sum(t["seconds"] * _times(t["times"], inside) for t in law["terms"] if t["of"] == "once"))
        elif inside > 1 and (domains == 1 or over is None):
            starts.append(self.numbers.get("intra_host_latency_seconds", 0.0))
        if domains > 1 and over is None:
            starts.append(self.numbers.get("inter_host_latency_seconds", 0.0))
        elif domains > 1:
            law, passes = over  # type: ignore[misc]
            hops = (domains - 1) * inside if operation == "all_to_all" else domains * inside
            starts.append((law["start_seconds"] + law["hop_seconds"] * hops) * passes)
        return max(starts)

    def _domains(self, group: str) -> tuple[int, int]:
        """Return how many ranks of a group share a domain, and how many domains it has."""
        if group == "inside":
            return self.per_group, 1
        if group == "across" and self.per_group != self.per_host:
            return 1, self.groups  # each pod is a domain
        hosts_of_domain = max(self.domain // self.per_host, 1)
        each = 1 if group == "across" else self.per_host
        if self.hosts <= hosts_of_domain:
            return self.hosts * each, 1
        return hosts_of_domain * each, math.ceil(self.hosts / hosts_of_domain)

    def _inside(self, operation: str, inside: int, domains: int, message: float) -> float | None:
        ring = operation in _RINGS
        ranks = inside * domains if ring else inside
        law = self.laws.get(("domain", operation))
        if law is not None:
            if ring:
                return _pace(law, message, inside) * (ranks - 1) / ranks * inside / (inside - 1)
            return _pace(law, message / domains, inside) / domains
        if domains > 1 and "intra_host_bytes_per_second" not in self.numbers and self._over_law(operation):
            return None
        share = _RINGS.get(operation, 1) * (ranks - 1) / ranks / (1 if ring else domains)
        return share / self.numbers["intra_host_bytes_per_second"]

    def _over(self, operation: str, inside: int, domains: int, message: float) -> float:
        found = self._over_law(operation)
        ranks = inside * domains
        if operation == "all_to_all":
            share = (domains - 1) / domains * inside
        else:
            share = _RINGS[operation] * (ranks - 1) / ranks
        if found is None:
            return share / inside / self.numbers["inter_host_bytes_per_second"]
        law, passes = found
        rate = min(inside * law["nic_bytes_per_second"], law.get("host_bytes_per_second", math.inf))
        return share / rate + sum(
            passes * ramp["seconds_per_byte"] * _filled(ramp["up_to_bytes"], message) for ramp in law["ramps"]
        )

    def _over_law(self, operation: str) -> tuple[dict[str, Any], float] | None:
        """Return the law over domains and what its start and ramps are multiplied by."""
        for name in (operation, *(_RINGS if operation in _RINGS else ())):
            if ("hosts", name) in self.laws:
                return self.laws["hosts", name], _RINGS.get(operation, 1) / _RINGS.get(name, 1)
        return None


def _laws(profile: dict[str, Any], given: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the first law of each operation; the profile's own before those of its kind."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name in [*profile.get("collective_laws", []), *profile.get("laws_of_kind", [])]:
        document = json.loads((_SETS / f"{name}.json").read_text(encoding="utf-8"))
        for reach, rate in (("domain", "intra_host_bytes_per_second"), ("hosts", "inter_host_bytes_per_second")):
            for law in document[reach] if given.get(rate) is None else []:
                found.setdefault((reach, law["operation"]), law)
    return found


def _pace(law: dict[str, Any], message: float, n: int) -> float:
    """Return seconds per byte of a message that has started."""
    total = 0.0
    for term in law["terms"]:
        bend = term.get("up_to_bytes", math.inf)
        if term["of"] == "bytes":
            total += term["seconds"] * _times(term["times"], n) * _filled(bend, message)
        elif term["of"] == "piece":
            total += term["seconds"] * _times(term["times"], n) * _filled(bend, message / n) / n
    return total


def _filled(bend: float, size: float) -> float:
    """Return min(size, bend) / size; 1 of an empty message."""
    return 1.0 if size <= bend else bend / size


def _times(factor: str, n: int) -> float:
    return {
        "one": 1.0,
        "rounds": math.log2(n),
        "hops": n - 1.0,
        "pairs": float(n * n),
        "share": (n - 1) / n,
        "beyond_pair": max(n - 2.0, 0.0),
        "beyond_socket": max(n - 4.0, 0.0),
        "padding": 2 ** math.ceil(math.log2(n)) / n - 1,
        "one_tray": float(n <= 4),
    }[factor]


def up_to(amount: float, grain: float) -> float:
    """Return an amount rounded up to whole grains."""
    return math.ceil(amount / grain) * grain
