r"""Seconds of a whole training step of a plan, where the spec says how long its dense part takes.

.. math:: S + F + B + \max(0, A - \min(B, F + B - H)) + O + W

with ``S`` the phases of the embeddings less what dense compute hides, ``F`` and ``B`` dense compute forward and
backward, ``A`` the all-reduce of dense gradients, ``H`` the hidden part of ``input_comm``, ``O`` the overhead of a
step, and ``W`` what dense compute waits for copies of stashed weights.

What overlaps under each of TorchRec's pipelines follows from what they start early:

=============================  ==============================================================================
``none``                       the all-reduce under the dense backward pass (``DistributedDataParallel``)
``train_sparse_dist``          also ``input_comm`` of the next batch under dense compute
``train_prefetch_sparse_dist`` also ``prefetch`` of the next batch under dense compute
=============================  ==============================================================================

The all-reduce and ``input_comm`` use the same links, so that seconds of dense compute hide one of them only.
"""

from collections.abc import Mapping

from cost_models.analytic.dense import gradient_all_reduce
from cost_models.collectives.collectives import CommTime, Network
from cost_models.hardware.hardware import Hardware
from cost_models.vocabulary import Evidence, Phase
from planner.domain.plan.whole_step import WholeStep
from planner.domain.problem.problem import Problem

_OVERHEAD = "step_overhead_seconds"


def dense_all_reduce(problem: Problem, hardware: Hardware) -> CommTime:
    """Return the time of the all-reduce of a step's dense gradients; raises ``MissingHardwareNumber``."""
    cluster = problem.cluster
    network = Network(
        hardware=hardware,
        num_ranks=cluster.world_size,
        ranks_per_host=cluster.ranks_per_host,
        pod_size=cluster.pod_size,
        job=cluster.job,
    )
    return gradient_all_reduce(problem.dense.all_reduce_bytes, network.of_job)


def whole_step(
    problem: Problem,
    hardware: Hardware,
    *,
    sparse_seconds: float,
    hidden_seconds: Mapping[Phase, float],
    sparse_evidence: Evidence,
    stash_wait_seconds: float = 0.0,
) -> WholeStep | None:
    """Return the whole step of a plan; ``None`` if requests are served or nothing is known of dense compute.

    ``sparse_seconds`` are those of the phases that dense compute does not hide, ``hidden_seconds`` the hidden ones of
    each phase that has some.
    """
    dense = problem.dense
    if problem.batch_size_per_rank is None or not dense.is_timed:
        return None
    forward, backward = dense.forward_seconds or 0.0, dense.backward_seconds or 0.0
    reduced = dense_all_reduce(problem, hardware)
    all_reduce = float(reduced.seconds[0])
    free = forward + backward - hidden_seconds.get(Phase.INPUT_COMM, 0.0)
    hidden = min(all_reduce, backward, free)
    evidence = [sparse_evidence, dense.evidence, *([reduced.evidence] if all_reduce > 0 else [])]
    overhead = 0.0
    if hardware.has(_OVERHEAD):
        quantity = hardware.quantity(_OVERHEAD, needed_for="the overhead of a whole step")
        overhead = quantity.value
        evidence.append(quantity.evidence)
    seconds = sparse_seconds + forward + backward + all_reduce - hidden + overhead + stash_wait_seconds
    samples = problem.batch_size_per_rank * problem.cluster.job_ranks
    return WholeStep(
        seconds=seconds,
        samples_per_second=samples / seconds if seconds > 0 else 0.0,
        sparse_seconds=sparse_seconds,
        hidden_sparse_seconds=sum(hidden_seconds.values()),
        dense_forward_seconds=forward,
        dense_backward_seconds=backward,
        dense_all_reduce_seconds=all_reduce,
        hidden_all_reduce_seconds=hidden,
        overhead_seconds=overhead,
        stash_wait_seconds=stash_wait_seconds,
        evidence=max(evidence),
    )
