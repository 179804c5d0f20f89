r"""The bound itself: the Lagrangian dual value of the relaxation, for any prices.

Model (choices may be mixed, loads may be spread freely)::

    minimise   sum_q w[q] * s[q]          with s[q] >= z[q] - v[q], s[q] >= 0
    (1) sum_{c of t} x[c] = 1                                     every table has choices
    (2) sum_c x[c] * total[c, q]                <= z[q]           the average rank
    (3) sum_c x[c] * total_bytes[c, m]          <= cap[m]         the whole cluster's memory
    (4) sum_c x[c] * world[c, q] + sum_{c of t} x[c] * big[c, q] <= z[q]   for every table t:
        its largest piece sits on top of what every rank carries anyway
    (5) sum_c x[c] * world[c, q] + a[q]         <= z[q]           some piece takes a[q] at least, where that is known

With prices lambda for (2), mu for (3), nu for (4), kappa for (5), none negative::

    L = - sum_q y[q] v[q] - sum_m mu[m] cap[m] + sum_q kappa[q] a[q]
        + sum_t min_{c of t} ( sum_q lambda[q] total[c,q] + sum_m mu[m] total_bytes[c,m]
                               + sum_q nu[t,q] big[c,q] + sum_q N[q] world[c,q] )
    with N[q] = kappa[q] + sum_t nu[t,q],  y[q] = lambda[q] + N[q] <= w[q]  (scaled down where it exceeds)

since min over z >= 0 of  w max(0, z - v) - y z  is  - y v  when y <= w. By (5) z >= a, too, where
the minimum is  w max(0, a - v) - y max(a, v). It is valid for **any** prices
that are not negative, so that nothing rests on the tolerances of the solver that proposed them.
"""

from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Floats
from planner.solver.bounds.relaxation import Relaxation


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of the rows (2) to (5); none is negative."""

    average: Floats  # (Q,) lambda
    memory: Floats  # (M,) mu, seconds per byte
    largest: Floats  # (T, Q) nu
    floor: Floats  # (Q,) kappa

    @property
    def on_top(self) -> Floats:
        """What seconds on every rank cost besides lambda, shape (Q,): N."""
        total: Floats = self.floor + np.sum(self.largest, axis=0)
        return total


def memory_prices(model: Relaxation, memory: Floats) -> Prices:
    """Return prices of bytes alone."""
    zero = np.zeros_like(model.weight)
    return Prices(average=zero, memory=memory, largest=np.zeros((model.num_tables, len(zero))), floor=zero)


def average_prices(model: Relaxation, memory: Floats | None = None) -> Prices:
    """Return the prices of the average rank alone, with bytes at a given price."""
    found = memory_prices(model, np.zeros(model.cluster_bytes.shape[0]) if memory is None else memory)
    return replace(found, average=model.weight)


def admissible(model: Relaxation, prices: Prices) -> Prices:
    """Return the nearest prices that give a bound: not negative, and no dearer than the phases are worth."""
    average, memory = np.maximum(prices.average, 0.0), np.maximum(prices.memory, 0.0)
    largest, floor = np.maximum(prices.largest, 0.0), np.maximum(prices.floor, 0.0)
    charged = average + floor + np.sum(largest, axis=0)
    shrink = np.where(charged > model.weight, model.weight / np.where(charged > 0, charged, 1.0), 1.0)
    return Prices(average=average * shrink, memory=memory, largest=largest * shrink, floor=floor * shrink)


def reduced_costs(model: Relaxation, prices: Prices) -> Floats:
    """Return what every choice costs at these prices, shape (C,)."""
    cost: Floats = model.total @ prices.average + model.total_bytes @ prices.memory + model.world @ prices.on_top
    if np.any(prices.largest):
        cost = cost + np.sum(prices.largest[model.choice_table] * model.big, axis=1)
    return cost


def dual_value(model: Relaxation, prices: Prices, least: Floats | None = None) -> float:
    """Return the Lagrangian dual value: a lower bound for any prices.

    ``least`` are the seconds a of (5), shape (Q,).
    """
    prices = admissible(model, prices)
    cheapest = np.full(model.num_tables, np.inf)
    np.minimum.at(cheapest, model.choice_table, reduced_costs(model, prices))
    charged = prices.average + prices.on_top
    known = np.zeros_like(model.window) if least is None else least
    hidden = charged * np.maximum(model.window, known) - model.weight * np.maximum(known - model.window, 0.0)
    paid = float(np.sum(hidden)) + float(np.sum(prices.memory * model.cluster_bytes))
    return float(np.sum(cheapest)) + float(np.sum(prices.floor * known)) - paid
