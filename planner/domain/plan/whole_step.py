"""A whole training step: phases of embeddings, dense compute, the all-reduce of dense gradients, and the rest."""

from dataclasses import dataclass

from cost_models.vocabulary import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeStep:
    """Seconds of one training step with its dense part, of the slowest rank in each phase.

    ``seconds`` is the sum of ``sparse_seconds``, the two of dense compute, ``overhead_seconds``, ``stash_wait_seconds``
    and the part of the all-reduce that sticks out.
    """

    seconds: float
    samples_per_second: float  # of all ranks together
    sparse_seconds: float  # phases of the embeddings that stick out from dense compute
    hidden_sparse_seconds: float  # of the same phases, hidden under dense compute
    dense_forward_seconds: float
    dense_backward_seconds: float
    dense_all_reduce_seconds: float  # of dense gradients, hidden or not
    hidden_all_reduce_seconds: float  # of these, under the dense backward pass
    overhead_seconds: float  # ``step_overhead_seconds`` of the hardware
    stash_wait_seconds: float  # of dense compute for copies of stashed weights
    evidence: Evidence  # the weakest number in it
