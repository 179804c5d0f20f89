r"""Seconds of the dense part of a model: arithmetic over the rate that its layers sustain, and its all-reduce.

.. math:: seconds = flops / (rate \cdot efficiency)

with the rate of the data sheet for the type of the arithmetic, and the one measured share of it that dense layers
sustain. A fully connected layer of ``a`` inputs and ``b`` outputs takes ``2 a b`` floating point operations per sample
forward, and twice as many backward: one product for the gradient of its inputs, one for that of its weights.

The gradients of all ranks are added up once per step, by the same all-reduce that carries the gradients of replicated
tables. It runs while the backward pass computes the gradients of earlier layers, as PyTorch's
``DistributedDataParallel`` and HugeCTR do.

References
----------
Wang et al., "DCN V2", arXiv 2008.13535 (low-rank cross layers: two products of width x rank).
Li et al., "PyTorch Distributed", arXiv 2006.15704 (all-reduce of buckets under the backward pass).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cost_models.collectives.collectives import CommTime, Network
from cost_models.hardware.hardware import Hardware

#: Operations backward for each one forward.
BACKWARD_PER_FORWARD = 2.0
#: A multiplication and an addition per weight.
_FLOPS_PER_WEIGHT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The layers of a dense part: stacks of fully connected ones, and cross layers."""

    mlp_widths: Sequence[Sequence[int]] = ()  # of each stack, its input first
    num_cross_layers: int = 0
    cross_width: int = 0
    cross_rank: int | None = None  # None: full matrices

    @property
    def num_weights(self) -> int:
        """Entries of all matrices."""
        stacked = sum(inputs * outputs for widths in self.mlp_widths for inputs, outputs in pairwise(widths))
        square = self.cross_width**2 if self.cross_rank is None else 2 * self.cross_width * self.cross_rank
        return stacked + self.num_cross_layers * square

    @property
    def num_parameters(self) -> int:
        """Weights, and a bias per output of each layer."""
        biases = sum(sum(widths[1:]) for widths in self.mlp_widths) + self.num_cross_layers * self.cross_width
        return self.num_weights + biases

    @property
    def forward_flops_per_sample(self) -> float:
        """Floating point operations of one sample forward."""
        return _FLOPS_PER_WEIGHT * self.num_weights


def compute_seconds(flops: float, compute_dtype: str, hardware: Hardware) -> float:
    """Return the seconds of so many floating point operations on one rank.

    The hardware has the rate of a type as ``<compute_dtype>_flops_per_second``.

    Raises
    ------
    cost_models.errors.MissingHardwareNumber
        The hardware lacks the rate of the type, or the efficiency.
    """
    what = f"dense compute in {compute_dtype}"
    rate = hardware.quantity(f"{compute_dtype}_flops_per_second", needed_for=what)
    efficiency = hardware.quantity("dense_efficiency", needed_for=what)
    return flops / (rate.value * efficiency.value)


def gradient_all_reduce(num_bytes: float, network: Network) -> CommTime:
    """Return the time of the all-reduce of ``num_bytes`` of dense gradients, shape (1,)."""
    size = np.array([num_bytes])
    return network.all_reduce(size, size)
