"""The numbers of a spec's hardware, and the pace of its links: docs/cost-models.md#communication."""

import json
import math
from dataclasses import dataclass
from typing import Any

from tests.support.oracle.rows.access import on_lines
from tests.support.paths import ROOT

_PROFILES = ROOT / "cost_models" / "hardware" / "profiles"
_CURVE = {"all_to_all": "alltoall"}


@dataclass(frozen=True)
class Machine:
    """Ranks, hosts and numbers."""

    world: int
    per_host: int
    hosts: int
    numbers: dict[str, float]
    curves: dict[str, Any]
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
        return cls(
            world=hosts * per_host,
            per_host=per_host,
            hosts=hosts,
            numbers=numbers,
            curves={} if "intra_host_bytes_per_second" in given else profile.get("intra_host_curves", {}),
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

    def gather_seconds(
        self, lookups: float, distinct: float, rows: float, row_bytes: float, least: float = 0.0
    ) -> float:
        """Q of the page."""
        x = self.whole(row_bytes)
        if not self.is_gpu:
            return lookups * x / self.memory_rate
        alike = lookups
        if distinct < rows:
            alike = min(lookups, -rows * math.log(1 - distinct / rows))
        held = min(1.0, self.of_gpu("l2_bytes", 40e6) / max(rows * x, 1.0))
        read = min(lookups, max(distinct, alike * (1 - held)))
        cached = self.of_gpu("l2_bytes_per_second", 1.7 * self.memory_rate)
        return read / self.memory_rate * x + max(least, (lookups - read) / cached * x)

    def host_reads(self, lookups: float, distinct: float) -> float:
        """n'' of the page, of lookups of cold rows."""
        return distinct + 2 / 3 * max(lookups - distinct, 0.0) if self.is_gpu else lookups

    def link(self, use: str) -> float:
        """Lg, Lu, Lc or L of the page."""
        return self.numbers.get(f"host_link_{use}_bytes_per_second", self.numbers["host_link_bytes_per_second"])

    def pace(self, operation: str, group: str, message: float) -> float:
        """Return seconds per byte of a collective among a group: all, host, or across."""
        w, g, h = self.world, self.per_host, self.hosts
        across = self.numbers.get("inter_host_bytes_per_second", math.nan)
        if group == "across":
            return (h - 1) / h / across if h > 1 else 0.0
        if group == "host":
            return self._inside(operation, (g - 1) / g, message)
        if operation == "all_to_all":
            near = self._inside(operation, (g - 1) / g, message / h) / h
            return max(near, (h - 1) / h / across if h > 1 else 0.0)
        share = (2 if operation == "all_reduce" else 1) * (w - 1) / w
        return max(self._inside(operation, share, message), share / g / across if h > 1 else 0.0)

    def _inside(self, operation: str, share: float, message: float) -> float:
        if self.per_host == 1:
            return 0.0
        curve = self.curves.get(_CURVE.get(operation, operation))
        if curve is None:
            return share / self.numbers["intra_host_bytes_per_second"]
        return share / _rate(curve["message_bytes"], curve["bus_bytes_per_second"], message)


def _rate(sizes: list[float], bandwidths: list[float], message: float) -> float:
    times: list[float] = []
    for size, bandwidth in zip(sizes, bandwidths, strict=True):
        times.append(max(size / bandwidth, times[-1] if times else 0.0))
    fastest = max(size / time for size, time in zip(sizes, times, strict=True))
    start = times[0] - sizes[0] / fastest
    rates = [size / max(time - start, size / fastest) for size, time in zip(sizes, times, strict=True)]
    logs = [(math.log(size), math.log(rate)) for size, rate in zip(sizes, rates, strict=True)]
    return math.exp(on_lines(logs, math.log(message) if message > 0 else -math.inf))


def up_to(amount: float, grain: float) -> float:
    """Return an amount rounded up to whole grains."""
    return math.ceil(amount / grain) * grain
