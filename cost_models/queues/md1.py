r"""Time in a queue M/D/1: work comes at random, takes equally long each time, and is done one after the other.

Arrivals are Poisson with rate :math:`\lambda`, service takes :math:`D`, so that the server is busy for the share
:math:`\rho = \lambda D`. With the number in the system :math:`N`, whose probabilities :math:`p_n` follow from
crossings of a level (arrivals during a service are Poisson, :math:`a_0 = e^{-\rho}`,
:math:`\bar A_m = P(A > m)`)

.. math:: p_0 = 1 - \rho, \qquad p_{n+1} a_0 = p_0 \bar A_n + \sum_{i=1}^{n} p_i \bar A_{n+1-i}

the time that work waits is, for :math:`(k - 1) D \le t < k D` and :math:`u = \lambda (k D - t)` [1],

.. math:: P(W \le t) = e^{-u} \sum_{j=0}^{k-1} P(N \le k - j) \frac{u^j}{j!}

All terms are positive, so that nothing cancels. Beyond ``_EXACT`` services the tail is exponential to all digits:

.. math:: P(W > t) = \frac{1 - \rho}{\rho e^{\theta} - 1} e^{-\theta t / D},
          \qquad \rho (e^{\theta} - 1) = \theta

References
----------
.. [1] G. J. Franx, "A simple solution for the M/D/c waiting time distribution", Operations Research Letters 29 (2001),
   of one server.
"""

import functools
import math

import numpy as np

from cost_models.arrays import Floats

_EXACT = 64  # services, counted one by one
_HALVINGS = 60


def time_quantile(rate: float, service_seconds: float, fraction: float) -> float:
    """Return the seconds within which this fraction of all work is done, waiting and service together.

    ``rate`` is in arrivals per second. Infinite where work comes as fast as it is done, or faster.
    """
    return service_seconds * (1 + waiting_services(rate * service_seconds, fraction))


@functools.lru_cache(maxsize=4096)
def waiting_services(utilization: float, fraction: float) -> float:
    """Return for how many services this fraction of all work waits at most."""
    if utilization >= 1:
        return math.inf
    if fraction <= 1 - utilization:
        return 0.0
    at_most = np.cumsum(_in_system(utilization))  # P(N <= n)
    whole = [_waits_at_most(k, 1.0, utilization, at_most) for k in range(1, _EXACT + 1)]  # P(W <= k - 1)
    if whole[-1] < fraction:
        return _beyond(utilization, fraction)
    k = int(np.searchsorted(np.array(whole), fraction))  # the waiting time lies between k - 1 and k services
    low, high = 0.0, 1.0  # what is left until k
    for _ in range(_HALVINGS):
        left = (low + high) / 2
        if _waits_at_most(k, left, utilization, at_most) < fraction:
            high = left
        else:
            low = left
    return k - low


def longest_service(rate: float, limit_seconds: float, fraction: float) -> float:
    """Return the seconds that a service may take so that this fraction of all work is done within a limit."""
    low, high = 0.0, min(limit_seconds, 1 / rate)
    for _ in range(_HALVINGS):
        service = (low + high) / 2
        if time_quantile(rate, service, fraction) <= limit_seconds:
            low = service
        else:
            high = service
    return low


def highest_rate(service_seconds: float, limit_seconds: float, fraction: float) -> float:
    """Return the arrivals per second at which this fraction of all work is done within a limit; 0 if none are."""
    low, high = 0.0, 1 / service_seconds
    if limit_seconds < service_seconds:
        return 0.0
    for _ in range(_HALVINGS):
        rate = (low + high) / 2
        if time_quantile(rate, service_seconds, fraction) <= limit_seconds:
            low = rate
        else:
            high = rate
    return low


def _in_system(utilization: float) -> Floats:
    """Return the probabilities of 0 to ``_EXACT`` in the system."""
    steps = np.arange(1, _EXACT + 1)
    arrivals = math.exp(-utilization) * np.concatenate([[1.0], np.cumprod(utilization / steps)])
    more = np.maximum(0.0, np.cumsum(arrivals[::-1])[::-1] - arrivals)  # P(A > m), small terms first
    found = np.zeros(_EXACT + 1)
    found[0] = 1 - utilization
    for n in range(_EXACT):
        crossed = found[0] * more[n] + float(found[1 : n + 1] @ more[n:0:-1])
        found[n + 1] = crossed / arrivals[0]
    return found


def _waits_at_most(k: int, left: float, utilization: float, at_most: Floats) -> float:
    """Return the probability that work waits for at most ``k - left`` services, ``left`` in (0, 1]."""
    mean = utilization * left
    terms = np.concatenate([[1.0], np.cumprod(mean / np.arange(1, k))])
    return math.exp(-mean) * float(terms @ at_most[k:0:-1])


def _beyond(utilization: float, fraction: float) -> float:
    """Return the quantile of the exponential tail, in services."""
    low, high = 0.0, 2 * (1 - utilization) / utilization
    for _ in range(_HALVINGS):
        decay = (low + high) / 2
        if utilization * math.expm1(decay) < decay:
            low = decay
        else:
            high = decay
    decay = (low + high) / 2
    share = (1 - utilization) / (utilization * math.exp(decay) - 1)
    return math.log(share / (1 - fraction)) / decay
