r"""How much memory stashed weights make room for, and how long dense compute waits for their copies.

Weights leave the device after the lookups of a step and are back before their backward pass. Meanwhile the dense part
keeps its activations, :math:`A` bytes that grow evenly over its forward pass of :math:`F` seconds and shrink evenly
over its backward pass of :math:`B`. A rank has :math:`u` bytes free while no activations are there. Memory of stashed
weights is free once all copies to the host, of :math:`S` bytes at the rate :math:`r`, have ended; it is needed again
from the beginning of the copies back, at the rate :math:`r'`. Until then activations have the :math:`u` bytes alone,
so that dense compute waits

.. math:: \max(0, S / r - F \min(1, u / A)), \qquad \max(0, S / r' - B \min(1, u / A))

seconds. A rank needs :math:`S \ge A - u`; the most that waits of :math:`E` seconds in each direction allow is

.. math:: S = \min\left(\frac{F + E}{1 / r + F / A}, \frac{B + E}{1 / r' + B / A}, A\right)

References
----------
TorchRec 1.8.0 ``memory_stashing.py`` (weights of whole operators, freed when the copies on one stream have ended,
allocated again before they are copied back; optimizer state stays), ``embeddingbag.py`` and ``embedding.py`` (after
each lookup), ``experimental_pipelines.py`` ``TrainPipelineSparseDistEmbStash`` (back from a module of the dense
backward pass on). PyTorch's allocator waits for outstanding copies before it gives up.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.tiers import host_links
from cost_models.arrays import Floats
from planner.domain.problem.problem import Problem
from planner.domain.problem.stash import HOST_BYTES_PER_BYTE

_NEEDED_FOR = "copies of stashed weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """The dense part of a step, and the link that copies use; all ranks are alike."""

    activation_bytes: float
    dense_seconds: tuple[float, float]  # forward and backward
    bytes_per_second: tuple[float, float]  # to the host and back
    max_wait_seconds: float

    @classmethod
    def of(cls, problem: Problem) -> "Copies | None":
        """Return the copies of a problem; ``None`` if it stashes nothing.

        Raises
        ------
        MissingHardwareNumber
            If no rate of the host link is known.
        """
        dense, stash = problem.dense, problem.stash
        if stash is None or not dense.activation_bytes:
            return None
        to_device, to_host = host_links(problem.cluster.hardware, needed_for=_NEEDED_FOR)
        return cls(
            activation_bytes=dense.activation_bytes,
            dense_seconds=(dense.forward_seconds or 0.0, dense.backward_seconds or 0.0),
            bytes_per_second=(to_host.value * stash.link_share, to_device.value * stash.link_share),
            max_wait_seconds=stash.max_wait_seconds,
        )

    def most_room_bytes(self) -> float:
        """Return the most that a rank can need and stash within the wait that is allowed."""
        room = self.activation_bytes
        for seconds, rate in zip(self.dense_seconds, self.bytes_per_second, strict=True):
            room = min(room, (seconds + self.max_wait_seconds) / (1.0 / rate + seconds / self.activation_bytes))
        return room

    @property
    def most_of_any_rank(self) -> float:
        """What a rank may stash at most within the wait that is allowed, if activations fit next to its tables."""
        return float(self.most_bytes(np.array([self.activation_bytes]))[0])

    def needed_bytes(self, free_bytes: Floats) -> Floats:
        """Return what ranks must stash at least; ``free_bytes`` are what tables leave, without activations."""
        needed: Floats = np.maximum(0.0, self.activation_bytes - free_bytes)
        return needed

    def most_bytes(self, free_bytes: Floats) -> Floats:
        """Return what ranks may stash at most within the wait that is allowed."""
        share = np.clip(free_bytes / self.activation_bytes, 0.0, 1.0)
        limits = [
            rate * (seconds * share + self.max_wait_seconds)
            for seconds, rate in zip(self.dense_seconds, self.bytes_per_second, strict=True)
        ]
        most: Floats = np.minimum(*limits)
        return most

    def limits_of_copies(
        self, stashed_bytes: Floats, used_bytes: Floats, whole_bytes: Floats
    ) -> list[tuple[Floats, Floats]]:
        r"""Return :meth:`most_bytes` as limits of sums over shards: amounts of every shard, and what ranks may have.

        A rank of :math:`C` bytes whose tables use :math:`h` of them, and stash :math:`S`, has :math:`u = C - h` free:

        .. math:: S \le r (F + E), \qquad \frac{A}{r F} S + h \le C + \frac{A E}{F}

        The same holds of the copies back.
        """
        found = []
        for seconds, rate in zip(self.dense_seconds, self.bytes_per_second, strict=True):
            found.append((stashed_bytes, np.full_like(whole_bytes, rate * (seconds + self.max_wait_seconds))))
            if seconds > 0:
                per_byte = self.activation_bytes / (rate * seconds)
                waited = self.activation_bytes * self.max_wait_seconds / seconds
                found.append((per_byte * stashed_bytes + used_bytes, whole_bytes + waited))
        return found

    def wait_seconds(self, stashed_bytes: Floats, free_bytes: Floats) -> tuple[Floats, Floats]:
        """Return how long dense compute of ranks waits for copies to the host, and back."""
        share = np.clip(free_bytes / self.activation_bytes, 0.0, 1.0)
        forward, backward = (
            np.where(stashed_bytes > 0, np.maximum(0.0, stashed_bytes / rate - seconds * share), 0.0)
            for seconds, rate in zip(self.dense_seconds, self.bytes_per_second, strict=True)
        )
        return forward, backward


def room_bytes(problem: Problem) -> float:
    """Return how much more of every rank's memory tables may use because weights are stashed."""
    copies = Copies.of(problem)
    if copies is None or problem.stash is None:
        return 0.0
    return min(copies.most_room_bytes() * problem.stash.room_share, problem.stashable_bytes)


def host_buffer_bytes(problem: Problem) -> float:
    """Return the host memory of every rank that copies of stashed weights take at most."""
    copies = Copies.of(problem)
    return 0.0 if copies is None else HOST_BYTES_PER_BYTE * min(copies.most_of_any_rank, problem.stashable_bytes)
