"""The two numbers of dense compute in the profiles, fitted to whole steps that were measured.

``dense_efficiency`` and ``step_overhead_seconds`` minimise the mean relative error of MLPerf's DLRM-DCNv2 steps, one
configuration (accelerator, hosts, batch, plan) one vote. Everything else of a step is the product's own price. Each
configuration is also predicted by the numbers that the others give (leave one out).

    python benchmarks/prices/reality/mlperf/dense_fit.py [--data FOLDER] [--write]

``--write`` puts the numbers into every profile that has rates of dense compute.
"""

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.prices.reality.mlperf.model import Job, evaluated
from benchmarks.prices.reality.mlperf.runs import Run, Settings, runs
from cost_models.arrays import Floats

_PROFILES = Path(__file__).parents[4] / "cost_models" / "hardware" / "profiles"
EFFICIENCIES = np.round(np.arange(0.30, 1.001, 0.02), 2)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The two numbers and how far they carry."""

    efficiency: float
    overhead_seconds: float
    errors: Floats  # signed and relative, of each configuration
    left_out_errors: Floats  # the same, each by the numbers that the others give
    efficiency_interval: tuple[float, float]
    overhead_interval_seconds: tuple[float, float]


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
        seconds = []
        for efficiency in EFFICIENCIES:
            step = evaluated(job, plan, {"dense_efficiency": float(efficiency), "step_overhead_seconds": 0.0})
            assert step.whole_step is not None
            seconds.append(step.whole_step.seconds)
        found.append(
            Configuration(
                platform=platform,
                job=job,
                settings=settings,
                step_seconds=float(np.median([run.step_seconds for run in same])),
                without_overhead=np.array(seconds),
            )
        )
    return found


def fitted(found: Sequence[Configuration]) -> Fit:
    """Fit both numbers; the intervals come from configurations drawn with replacement."""
    measured = np.array([one.step_seconds for one in found])
    bare = np.array([one.without_overhead for one in found])
    place, overhead = _best(measured, bare)
    left_out = []
    for index in range(len(found)):
        others = np.arange(len(found)) != index
        at, over = _best(measured[others], bare[others])
        left_out.append((bare[index, at] + over) / measured[index] - 1)
    rng = np.random.default_rng(0)
    drawn = [_best(measured[some], bare[some]) for some in rng.integers(0, len(found), (_RESAMPLED, len(found)))]
    efficiency_interval = np.percentile([EFFICIENCIES[at] for at, _ in drawn], _INTERVAL)
    overhead_interval = np.percentile([over for _, over in drawn], _INTERVAL)
    return Fit(
        efficiency=float(EFFICIENCIES[place]),
        overhead_seconds=overhead,
        errors=(bare[:, place] + overhead) / measured - 1,
        left_out_errors=np.array(left_out),
        efficiency_interval=(float(efficiency_interval[0]), float(efficiency_interval[1])),
        overhead_interval_seconds=(float(overhead_interval[0]), float(overhead_interval[1])),
    )


def _best(measured: Floats, bare: Floats) -> tuple[int, float]:
    """Return the place of the best efficiency and the best overhead, a weighted median, at least 0."""
    best = (np.inf, 0, 0.0)
    for place in range(bare.shape[1]):
        missing = measured - bare[:, place]
        order = np.argsort(missing)
        weight = np.cumsum(1 / measured[order])
        overhead = max(float(missing[order][np.searchsorted(weight, weight[-1] / 2)]), 0.0)
        error = float(np.mean(np.abs((bare[:, place] + overhead) / measured - 1)))
        best = min(best, (error, place, overhead))
    return best[1], best[2]


def write(fit: Fit, num_configurations: int) -> None:
    """Put the numbers into every profile with rates of dense compute."""
    low, high = fit.efficiency_interval
    least, most = (1e3 * one for one in fit.overhead_interval_seconds)
    source = (
        f"Fitted to {num_configurations} configurations of MLPerf Training v3.0 to v5.1, DLRM-DCNv2:"
        " benchmarks/prices/reality/mlperf/dense_fit.py"
    )
    for path in sorted(_PROFILES.glob("*.json")):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r'    "(?:dense_efficiency|step_overhead_seconds)": .*\n', "", text)
        if _RATE not in text:
            continue
        is_measured = path.stem in _MEASURED
        evidence = "measured" if is_measured else "estimated"
        elsewhere = "" if is_measured else "; taken over from A100, H100, H200, B200 and GB200"
        lines = (
            ("dense_efficiency", round(fit.efficiency, 2), "share", f"90% interval {low:.2f} to {high:.2f}"),
            (
                "step_overhead_seconds",
                round(fit.overhead_seconds, 6),
                "seconds",
                f"90% interval {least:.2f} to {most:.2f} ms",
            ),
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
    low, high = fit.efficiency_interval
    least, most = (1e3 * one for one in fit.overhead_interval_seconds)
    print(f"dense_efficiency {fit.efficiency:.2f}, 90% interval {low:.2f} to {high:.2f}")
    print(f"step_overhead_seconds {1e3 * fit.overhead_seconds:.3f} ms, 90% interval {least:.3f} to {most:.3f} ms")
    for name, errors in (("fitted", fit.errors), ("left out", fit.left_out_errors)):
        print(f"{name}: mean error {np.abs(errors).mean():.1%}, largest {np.abs(errors).max():.1%}")
    if arguments.write:
        write(fit, len(found))


if __name__ == "__main__":
    main()
