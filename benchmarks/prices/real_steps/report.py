"""What ``real_steps.py`` prints, and its JSON."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.prices.real_steps.verdict import KindStart, ModelResult, Verdict

_MILLISECONDS, _MICROSECONDS = 1e3, 1e6
WANTED_TAU = 0.8
#: With more, chance orders plans that differ by as much as balance and kinds cost, and being within noise says nothing.
MOST_NOISE = 0.1


def model_lines(result: ModelResult) -> Iterator[str]:
    """Yield the lines of one model."""
    measured = result.measured
    seconds, busy = measured.seconds, measured.busy_seconds
    rounds, steps, _ = measured.steps.shape
    order = sorted(result.different, key=lambda index: seconds[index])
    best, worst = order[0], order[-1]
    yield (
        f"{result.model}: {len(result.different)} plans, {rounds} rounds of {steps} steps;"
        f" {seconds[best] * _MILLISECONDS:.2f} ms ({result.plans[best].name})"
        f" to {seconds[worst] * _MILLISECONDS:.2f} ms"
    )
    yield (
        f"  noise {result.noise:.1%}, tau of two halves {measured.repeatability:.2f};"
        f" load {measured.load[0]:.1f} before, {measured.load[1]:.1f} after; built in {measured.build_seconds:.0f} s"
    )
    if result.predictions:
        yield "  cost model             tau (busy)  predicted/measured  its plan/best  /torchrec  predicted best/best"
    for name in result.predictions:
        one = result.verdict(name)
        taus = f"{one.tau:5.2f} ({one.busy_tau:4.2f})"
        yield (
            f"  {one.cost_model:<20} {taus} {one.ratio:19.2f} {one.over_best:14.3f} {one.over_torchrec:10.3f}"
            f" {one.picked_over_best:20.3f}"
        )
    yield (
        f"  {'plan':<44} {'measured':>9} {'busy':>9} "
        + " ".join(f"{name:>12}" for name in result.predictions)
        + "  ms; kinds"
    )
    for index in order:
        plan = result.plans[index]
        predicted = " ".join(f"{of[index].step_seconds * _MILLISECONDS:12.3f}" for of in result.predictions.values())
        name = plan.name if len(plan.name) <= 44 else f"{plan.name[:41]}..."
        times = f"{seconds[index] * _MILLISECONDS:9.3f} {busy[index] * _MILLISECONDS:9.3f}"
        yield f"  {name:<44} {times} {predicted}  {', '.join(plan.kinds)}"


def summary_lines(results: Sequence[ModelResult], starts: Sequence[KindStart]) -> Iterator[str]:
    """Yield what all models say together: targets, phases, starts."""
    for name in results[0].predictions:
        verdicts = [result.verdict(name) for result in results]
        within = [_is_within(result, one) for result, one in zip(results, verdicts, strict=True)]
        yield (
            f"{name}: tau {min(one.tau for one in verdicts):.2f} to {max(one.tau for one in verdicts):.2f}"
            f" (wanted: {WANTED_TAU} each), plan within noise of the best on {sum(within)} of {len(results)},"
            f" {geometric_mean([one.over_best for one in verdicts]):.3f} of the best,"
            f" {geometric_mean([one.over_torchrec for one in verdicts]):.3f} of TorchRec's planner's (geometric means)"
        )
    if noisy := [result.model for result in results if result.noise > MOST_NOISE]:
        yield f"noise above {MOST_NOISE:.0%} on {', '.join(noisy)}: no verdict there; measure again on a quiet machine"
    if starts:
        yield "start of a sharding type, once per step (fit to the bare model), us:"
    for one in starts:
        times = f"{one.seconds * _MICROSECONDS:.0f} +- {one.error_seconds * _MICROSECONDS:.0f}"
        busy = f"processor time {one.busy_seconds * _MICROSECONDS:.0f}"
        yield f"  {one.kind:<18} {times}, {busy}, {one.num_plans} plans"
    yield "collectives of 64 bytes for each rank, median (least tenth), us:"
    for operation in results[0].measured.collectives:
        every = np.concatenate([result.measured.collectives[operation] for result in results])
        if len(every):
            middle, early = np.quantile(every, [0.5, 0.1]) * _MICROSECONDS
            yield f"  {operation:<16} {middle:.0f} ({early:.0f})"


def as_json(results: Sequence[ModelResult], starts: Sequence[KindStart], machine: dict[str, Any]) -> dict[str, Any]:
    """Return all figures: seconds as measured and as predicted, of steps and of phases, for every plan."""
    return {
        "machine": machine,
        "models": [
            {
                "model": result.model,
                "noise": result.noise,
                "tau_of_halves": result.measured.repeatability,
                "rounds": len(result.measured.steps),
                "load": list(result.measured.load),
                "verdicts": [_fields(result.verdict(name)) for name in result.predictions],
                "plans": [
                    {
                        "names": list(plan.names),
                        "kinds": list(plan.kinds),
                        "measured_seconds": float(result.measured.seconds[index]),
                        "busy_seconds": float(result.measured.busy_seconds[index]),
                        "measured_phases": dict(result.measured.phases[index]) if result.measured.phases else {},
                        "predicted": {
                            name: {"step_seconds": of[index].step_seconds, "phases": dict(of[index].phases)}
                            for name, of in result.predictions.items()
                        },
                    }
                    for index, plan in enumerate(result.plans)
                ],
            }
            for result in results
        ],
        "starts": [_fields(one) for one in starts],
        "collectives": {
            operation: float(np.median(np.concatenate([r.measured.collectives[operation] for r in results])))
            for operation in results[0].measured.collectives
            if len(results[0].measured.collectives[operation])
        },
    }


def is_reached(results: Sequence[ModelResult]) -> bool:
    """Whether order, winners and the comparison with TorchRec's planner are as wanted, under every cost model."""
    for name in results[0].predictions:
        verdicts = [result.verdict(name) for result in results]
        if (
            any(one.tau < WANTED_TAU for one in verdicts)
            or not all(_is_within(result, one) for result, one in zip(results, verdicts, strict=True))
            or geometric_mean([one.over_torchrec for one in verdicts]) >= 1
        ):
            return False
    return True


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _is_within(result: ModelResult, one: Verdict) -> bool:
    return one.over_best <= 1 + result.noise and result.noise <= MOST_NOISE


def _fields(one: Verdict | KindStart) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__slots__}
