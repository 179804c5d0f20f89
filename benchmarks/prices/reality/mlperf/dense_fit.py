"""The numbers of dense compute in the profiles, fitted to whole steps that were measured.

``dense_efficiency`` and ``step_overhead_seconds`` minimise the mean relative error of MLPerf's DLRM-DCNv2 steps, one
configuration (accelerator, hosts, batch, plan) one vote. With them goes one number of HugeCTR, which ran these steps:
what its backward kernels take of FBGEMM's, which the product prices. Everything else of a step is the product's own
price. Each configuration is also predicted by the numbers that the others give (leave one out).

    python benchmarks/prices/reality/mlperf/dense_fit.py [--data FOLDER] [--write]

``--write`` puts the two numbers into every profile that has rates of dense compute, and the third one into
``benchmarks/measured/hugectr.json``.
"""

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.prices.reality.mlperf.model import HUGECTR, Job, evaluated, steps_of
from benchmarks.prices.reality.mlperf.runs import Run, Settings, runs
from cost_models.arrays import Floats

_PROFILES = Path(__file__).parents[4] / "cost_models" / "hardware" / "profiles"
EFFICIENCIES = np.round(np.arange(0.30, 1.001, 0.05), 2)
BACKWARD_SHARES = np.round(np.arange(0.30, 1.001, 0.05), 2)
_INTERVAL = (5, 95)  # percentiles over configurations left out in turn
_RESAMPLED = 200
_RATE = "_flops_per_second"
_MEASURED = ("dgx-a100-80g", "dgx-h100-80g", "dgx-h200-141g", "dgx-b200-180g", "gb200-nvl72")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Submissions that ran the same, and the median of their steps."""

    platform: str
    job: Job
    settings: Settings
    step_seconds: float
    #: of the product without an overhead, at each of ``EFFICIENCIES``
    without_overhead: Floats
    backward_seconds: float  # of the kernels that the product prices, the same at every efficiency


class Numbers(NamedTuple):
    """What is fitted."""

    efficiency: float
    backward_share: float
    overhead_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The numbers and how far they carry."""

    numbers: Numbers
    lower: Numbers  # limits of each by itself, over configurations drawn with replacement
    upper: Numbers
    errors: Floats  # signed and relative, of each configuration
    left_out_errors: Floats  # the same, each by the numbers that the others give


def configurations(folder: Path) -> list[Configuration]:
    """Price every configuration of a folder at every efficiency."""
    grouped: dict[tuple[str, Job, Settings], list[Run]] = {}
    for run in runs(folder):
        if isinstance(run, Run) and not run.is_odd:
            grouped.setdefault((run.platform, run.job, run.settings), []).append(run)
    found = []
    for (platform, job, settings), same in grouped.items():
        plan = next((run.printed for run in same if run.printed is not None), None) or same[0].plan()
        if plan is None:
            continue
        priced = [
            evaluated(job, plan, {"dense_efficiency": float(efficiency), "step_overhead_seconds": 0.0})
            for efficiency in EFFICIENCIES
        ]
        with_kernels = np.array([steps_of(one, 1.0).whole for one in priced])
        found.append(
            Configuration(
                platform=platform,
                job=job,
                settings=settings,
                step_seconds=float(np.median([run.step_seconds for run in same])),
                without_overhead=with_kernels,
                backward_seconds=with_kernels[0] - steps_of(priced[0], 0.0).whole,
            )
        )
    return found


def fitted(found: Sequence[Configuration]) -> Fit:
    """Fit the numbers; the limits come from configurations drawn with replacement."""
    best = _best(found)
    left_out = []
    for index, one in enumerate(found):
        others = _best([*found[:index], *found[index + 1 :]])
        left_out.append(_predicted(one, others) / one.step_seconds - 1)
    rng = np.random.default_rng(0)
    drawn = np.array(
        [
            _best([found[index] for index in some])
            for some in rng.integers(0, len(found), (_RESAMPLED, len(found))).tolist()
        ]
    )
    lower, upper = np.percentile(drawn, _INTERVAL, axis=0).tolist()
    return Fit(
        numbers=best,
        lower=Numbers(*lower),
        upper=Numbers(*upper),
        errors=np.array([_predicted(one, best) / one.step_seconds - 1 for one in found]),
        left_out_errors=np.array(left_out),
    )


def _predicted(one: Configuration, numbers: Numbers) -> float:
    place = int(np.searchsorted(EFFICIENCIES, numbers.efficiency - 1e-9))
    saved = (1 - numbers.backward_share) * one.backward_seconds
    return float(one.without_overhead[place]) - saved + numbers.overhead_seconds


def _best(found: Sequence[Configuration]) -> Numbers:
    """Return the numbers of least mean error: both shares from grids, the overhead a weighted median and at least 0."""
    measured = np.array([one.step_seconds for one in found])
    backward = np.array([one.backward_seconds for one in found])
    bare = np.array([one.without_overhead for one in found]).T  # (E, C)
    saved = (1 - BACKWARD_SHARES)[:, None] * backward  # (S, C)
    missing = measured - (bare[:, None] - saved)  # (E, S, C)
    order = np.argsort(missing, axis=-1)
    weight = np.cumsum((1 / measured)[order], axis=-1)
    middle = np.argmax(weight >= weight[..., -1:] / 2, axis=-1)
    ranked = np.take_along_axis(missing, order, axis=-1)
    overhead = np.maximum(np.take_along_axis(ranked, middle[..., None], axis=-1), 0.0)  # (E, S, 1)
    errors = np.mean(np.abs((overhead - missing) / measured), axis=-1)
    at, share = np.unravel_index(np.argmin(errors), errors.shape)
    return Numbers(float(EFFICIENCIES[at]), float(BACKWARD_SHARES[share]), float(overhead[at, share, 0]))


def write(fit: Fit, num_configurations: int) -> None:
    """Put the numbers into every profile with rates of dense compute, and that of HugeCTR into its file."""
    numbers, lower, upper = fit.numbers, fit.lower, fit.upper
    source = (
        f"Fitted to {num_configurations} configurations of MLPerf Training v3.0 to v5.1, DLRM-DCNv2:"
        " benchmarks/prices/reality/mlperf/dense_fit.py"
    )
    of_hugectr = {
        "backward_share": numbers.backward_share,
        "lower": round(lower.backward_share, 2),
        "upper": round(upper.backward_share, 2),
        "source": source,
    }
    HUGECTR.write_text(json.dumps(of_hugectr, indent=1) + "\n", encoding="utf-8")
    for path in sorted(_PROFILES.glob("*.json")):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r'    "(?:dense_efficiency|step_overhead_seconds)": .*\n', "", text)
        if _RATE not in text:
            continue
        is_measured = path.stem in _MEASURED
        evidence = "measured" if is_measured else "estimated"
        elsewhere = "" if is_measured else "; taken over from A100, H100, H200, B200 and GB200"
        efficiencies = f"90% interval {lower.efficiency:.2f} to {upper.efficiency:.2f}"
        overheads = f"90% interval {1e3 * lower.overhead_seconds:.2f} to {1e3 * upper.overhead_seconds:.2f} ms"
        lines = (
            ("dense_efficiency", numbers.efficiency, "share", efficiencies),
            ("step_overhead_seconds", round(numbers.overhead_seconds, 6), "seconds", overheads),
        )
        written = ""
        for name, value, unit, note in lines:
            number = {"value": value, "unit": unit, "evidence": evidence, "source": source, "note": note + elsewhere}
            written += f'    "{name}": {json.dumps(number)},\n'
        last = [match.end() for match in re.finditer(rf'    "\w+{_RATE}": .*\n', text)][-1]
        path.write_text(text[:last] + written + text[last:], encoding="utf-8")


def main() -> None:
    """Fit, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/measured_gpu"), help="folder of measured tables")
    parser.add_argument("--write", action="store_true", help="put the numbers into the profiles")
    arguments = parser.parse_args()
    found = configurations(arguments.data)
    fit = fitted(found)
    for one, error, left_out in zip(found, fit.errors, fit.left_out_errors, strict=True):
        print(
            f"{one.platform:12} {one.job.global_batch:7} {one.settings.sharding_plan:9}"
            f" {1e3 * one.step_seconds:7.3f} ms  error {error:+6.1%}  left out {left_out:+6.1%}"
        )
    for name, value, low, high in zip(Numbers._fields, fit.numbers, fit.lower, fit.upper, strict=True):
        print(f"{name} {value:.3g}, 90% interval {low:.3g} to {high:.3g}")
    for name, errors in (("fitted", fit.errors), ("left out", fit.left_out_errors)):
        print(f"{name}: mean error {np.abs(errors).mean():.1%}, largest {np.abs(errors).max():.1%}")
    if arguments.write:
        write(fit, len(found))


if __name__ == "__main__":
    main()
