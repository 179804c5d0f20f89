r"""Between which limits measured seconds lie around those of an analytic model, with the probability of ``COVERAGE``.

The limits of a shard's seconds in a phase are the wider ones of

- what the model says with every number of the hardware at its limit at once, as fast or as slow as its stated error
  allows, and collectives at the limits of their laws (:meth:`cost_models.hardware.hardware.Hardware.at_limit`);
- the seconds times what measured launches of kernels took, as a share of what the roofline model says of them, by
  direction, memory and lookups of the launch (:mod:`cost_models.intervals.factors`).

The first knows how well the numbers of this machine are known, the second what the formulas leave out. The shares are
of kernels with their starts, which have limits of their own. Launches were measured on GPUs; other hardware has no
intervals narrower than those.
"""

import numpy as np

from cost_models.arrays import Bools
from cost_models.hardware.hardware import Hardware, Limit
from cost_models.intervals.factors import KernelKind, kernel_factors
from cost_models.protocol import CostModel, SecondsLimits, ShardWork
from cost_models.vocabulary import IN_DEVICE_MEMORY, Phase


def limits_of(model: CostModel, work: ShardWork, hardware: Hardware, launch_lookups: float) -> SecondsLimits:
    """Return the limits of every shard and phase; see :class:`cost_models.protocol.IntervalModel`."""
    stated, fastest, slowest = (model.predict(work, hardware.at_limit(limit)).seconds for limit in Limit)
    lower, upper = np.minimum(stated, fastest), np.maximum(stated, slowest)
    in_device: Bools = IN_DEVICE_MEMORY[work.kernel]
    kinds: tuple[tuple[KernelKind, tuple[Phase, ...], Bools], ...] = (
        ("forward device", (Phase.FORWARD_COMPUTE,), in_device),
        ("backward device", (Phase.BACKWARD_COMPUTE,), in_device),
        ("forward host", (Phase.FORWARD_COMPUTE, Phase.PREFETCH), ~in_device),
        ("backward host", (Phase.BACKWARD_COMPUTE,), ~in_device),
    )
    for kind, phases, shards in kinds:
        factors = kernel_factors(kind, launch_lookups)
        for phase in phases:
            seconds = stated[shards, phase]
            lower[shards, phase] = np.minimum(lower[shards, phase], seconds * factors.lower)
            upper[shards, phase] = np.maximum(upper[shards, phase], seconds * factors.upper)
    return SecondsLimits(lower_seconds=lower, upper_seconds=upper)
