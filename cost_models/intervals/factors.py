"""Between which factors of predicted seconds measured ones lie, by what is predicted and by its range.

``factors.json`` holds them; ``benchmarks/prices/reality/analytic_intervals.py`` makes the file from public
measurements. Laws of collectives have intervals of their own (:mod:`cost_models.hardware.laws.intervals`), and a number
of a profile may state its own error.
"""

import functools
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from cost_models.hardware.laws.intervals import COVERAGE

__all__ = ["COVERAGE", "Factors", "KernelKind", "Reach", "kernel_factors", "link_factors", "number_error"]

#: What a kernel does, and where the rows lie that it reads or writes.
KernelKind = Literal["forward device", "forward host", "backward device", "backward host"]
#: Links inside a domain, or those over several.
Reach = Literal["domain", "hosts"]


@dataclass(frozen=True, slots=True)
class Factors:
    """Measured over predicted seconds: 90% lie between both."""

    lower: float  # 0 < lower <= 1
    upper: float  # >= 1

    def __post_init__(self) -> None:
        """Reject factors that leave out the prediction."""
        if not 0 < self.lower <= 1 <= self.upper < float("inf"):
            raise ValueError(f"Expected 0 < lower <= 1 <= upper, not {self.lower:g} and {self.upper:g}.")


def kernel_factors(kind: KernelKind, lookups: float) -> Factors:
    """Return the factors of a launch with so many lookups."""
    return _at(_table().kernels[kind], lookups)


def link_factors(reach: Reach, message_bytes: float) -> Factors:
    """Return the factors of a collective that a constant rate predicts, without a law."""
    return _at(_table().links[reach], message_bytes)


def number_error() -> float:
    """Return by what part of itself a number of a profile may be wrong that states no error of its own.

    Of rates of links, the only ones with enough measurements, measured evidence does not mean a small error.
    """
    return _table().number_error


_Steps = tuple[tuple[float, Factors], ...]  # from which amount on, increasing


@dataclass(frozen=True, slots=True)
class _Table:
    kernels: dict[str, _Steps]
    links: dict[str, _Steps]
    number_error: float


@functools.cache
def _table() -> _Table:
    document = json.loads((files("cost_models") / "intervals" / "factors.json").read_text(encoding="utf-8"))
    return _Table(
        kernels=_steps(document["kernels"], "kind", "from_lookups"),
        links=_steps(document["links"], "reach", "from_bytes"),
        number_error=float(document["numbers"]["relative_error"]),
    )


def _steps(entries: list[dict[str, float | str]], name: str, start: str) -> dict[str, _Steps]:
    found: dict[str, list[tuple[float, Factors]]] = {}
    for one in entries:
        factors = Factors(lower=float(one["lower"]), upper=float(one["upper"]))
        found.setdefault(str(one[name]), []).append((float(one[start]), factors))
    return {key: tuple(sorted(steps, key=lambda step: step[0])) for key, steps in found.items()}


def _at(steps: _Steps, amount: float) -> Factors:
    reached = [factors for start, factors in steps if start <= amount]
    return reached[-1] if reached else steps[0][1]
