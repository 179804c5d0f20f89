r"""What plans are worth: samples per second, machines, prices, energy.

A step is the whole step if the spec times its dense part, and else the objective of the embeddings. What no plan of a
point can be better than follows from its bound: a whole step takes at least

.. math:: E + F + B + O + \max(0, A - \min(B, F + B))

with the bound ``E`` of the embeddings, dense compute ``F`` and ``B`` forward and backward, the overhead ``O`` of a step
and the all-reduce ``A`` of dense gradients, of which as much is hidden as can be.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.domain.formats.compact_form import RANKS, is_compact, long_value
from planner.pricing.serving import P99, answered_seconds, sustained_rate

_SECONDS_PER_HOUR = 3600.0
_BILLION, _THOUSAND = 1e9, 1e3
#: Rounding of sums of phases, relative.
_ALIKE = 1e-9
_STEP_TIME = "step_time"
_DEVICE_TIERS = ("hbm", "ddr")  # of accelerators, and of hosts without any

#: Figures of which more is better; of all others less is.
MORE_IS_BETTER = frozenset({"samples_per_second", "requests_per_second", "global_batch_size"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """The cluster of a point and what it costs."""

    num_hosts: int
    num_ranks: int
    batch_size_per_rank: int | None  # None where requests are served
    price_per_host_hour: float | None = None
    watts_per_host: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a plan is worth, or at best can be; ``None`` where that is not known."""

    num_hosts: int
    num_ranks: int
    step_seconds: float | None = None
    is_whole_step: bool = False
    samples_per_second: float | None = None
    requests_per_second: float | None = None
    p99_seconds: float | None = None
    fullest_rank_fraction: float | None = None
    global_batch_size: int | None = None
    price_per_hour: float | None = None
    price_per_billion_samples: float | None = None
    watts: float | None = None
    joules_per_thousand_samples: float | None = None
    checkpoint_write_bytes_per_second: float | None = None
    checkpoint_stored_bytes: float | None = None

    def value(self, name: str) -> float | None:
        """Return a figure by its name."""
        found: float | None = getattr(self, name)
        return found


def machine_figures(machines: Machines) -> Figures:
    """Return what is known of a point before it has a plan."""
    price, watts, batch = machines.price_per_host_hour, machines.watts_per_host, machines.batch_size_per_rank
    return Figures(
        num_hosts=machines.num_hosts,
        num_ranks=machines.num_ranks,
        global_batch_size=None if batch is None else batch * machines.num_ranks,
        price_per_hour=None if price is None else price * machines.num_hosts,
        watts=None if watts is None else watts * machines.num_hosts,
    )


def with_step(figures: Figures, seconds: float, *, is_whole_step: bool) -> Figures:
    """Return the figures of a point whose step takes so long."""
    batch = figures.global_batch_size
    rate = math.inf if seconds <= 0 else None if batch is None else batch / seconds
    if batch is None or rate is None or not math.isfinite(rate):
        return replace(figures, step_seconds=seconds, is_whole_step=is_whole_step)
    price, watts = figures.price_per_hour, figures.watts
    return replace(
        figures,
        step_seconds=seconds,
        is_whole_step=is_whole_step,
        samples_per_second=rate,
        price_per_billion_samples=None if price is None else price / _SECONDS_PER_HOUR / rate * _BILLION,
        joules_per_thousand_samples=None if watts is None else watts / rate * _THOUSAND,
    )


def figures_of(plan: Mapping[str, Any], machines: Machines) -> tuple[Figures, Figures]:
    """Return what a plan document in either form is worth, and what no plan of its spec is better than."""
    objective, whole, serving = plan["objective"], plan.get("whole_step"), plan.get("serving")
    base = machine_figures(machines)
    if serving is not None:
        found = replace(
            base,
            requests_per_second=serving["sustained_requests_per_second"],
            p99_seconds=serving.get("p99_seconds"),
            fullest_rank_fraction=fullest_rank_fraction(plan),
        )
        return found, _serving_at_best(base, serving, objective["lower_bound_seconds"])
    seconds = objective["seconds"] if whole is None else whole["seconds"]
    written, stored = _checkpoint_figures(plan)
    found = replace(
        with_step(base, seconds, is_whole_step=whole is not None),
        fullest_rank_fraction=fullest_rank_fraction(plan),
        checkpoint_write_bytes_per_second=written,
        checkpoint_stored_bytes=stored,
    )
    bound = step_bound(plan)
    at_best = base if bound is None else with_step(base, bound, is_whole_step=whole is not None)
    least = None if stored is None else 0.0  # no bound says what must be stored
    return found, replace(
        at_best, fullest_rank_fraction=0.0, checkpoint_write_bytes_per_second=least, checkpoint_stored_bytes=least
    )


def _serving_at_best(base: Figures, serving: Mapping[str, Any], bound_seconds: float) -> Figures:
    """Return what no plan serves better than: one whose requests take as long as their bound."""
    found = replace(base, fullest_rank_fraction=0.0)
    if bound_seconds <= 0:
        return found
    limits = serving["utilization_limit"], serving.get("p99_limit_seconds")
    rate = None if serving.get("p99_seconds") is None else serving["requests_per_second"]
    return replace(
        found,
        requests_per_second=sustained_rate(bound_seconds, *limits),
        p99_seconds=answered_seconds(rate, bound_seconds, P99),
    )


def _checkpoint_figures(plan: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the bytes per second that checkpoints write under a plan, and those stored; None if not said."""
    checkpoint = plan.get("checkpoint")
    if not checkpoint or "mean_write_bytes_per_second" not in checkpoint:
        return None, None
    return checkpoint["mean_write_bytes_per_second"], float(checkpoint["stored_bytes"])


def step_bound(plan: Mapping[str, Any]) -> float | None:
    """Return the seconds that no step of the plan's spec is shorter than; ``None`` if the bound does not say."""
    objective, whole = plan["objective"], plan.get("whole_step")
    bound: float = objective["lower_bound_seconds"]
    if whole is None:
        return bound if objective["name"] == _STEP_TIME else None
    if not is_of_step(plan):
        return None
    return bound + dense_seconds_at_least(whole)


def is_of_step(plan: Mapping[str, Any]) -> bool:
    """Whether the objective of a plan is the part of its whole step that embeddings take."""
    seconds, sparse = plan["objective"]["seconds"], plan["whole_step"]["sparse_seconds"]
    is_alike: bool = abs(seconds - sparse) <= _ALIKE * max(seconds, sparse)
    return plan["objective"]["name"] == _STEP_TIME and is_alike


def dense_seconds_at_least(whole: Mapping[str, Any]) -> float:
    """Return what a step takes beyond its embeddings at least, whatever the plan."""
    forward, backward = whole["dense_forward_seconds"], whole["dense_backward_seconds"]
    all_reduce = whole["dense_all_reduce_seconds"]
    exposed = max(0.0, all_reduce - min(backward, forward + backward))
    total: float = forward + backward + whole["overhead_seconds"] + exposed
    return total


def fullest_rank_fraction(plan: Mapping[str, Any]) -> float:
    """Return the used share of the fullest rank of a plan document in either form, of its accelerators' memory."""
    ranks = long_value(RANKS, plan["ranks"]) if is_compact(plan) else plan["ranks"]
    tier = next((one for one in _DEVICE_TIERS if any(rank["capacity_bytes"].get(one) for rank in ranks)), None)
    if tier is None:
        return 0.0
    shares = [
        rank["bytes"].get(tier, 0) / rank["capacity_bytes"][tier] for rank in ranks if rank["capacity_bytes"][tier]
    ]
    return float(max(shares))
