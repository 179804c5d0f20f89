"""Optimizers that a fused kernel runs in its backward pass, with their exact state bytes.

State is fp32 whatever the weights are (FBGEMM ``split_table_batched_embeddings_ops_training``:
momentum tensors are created with ``dtype=torch.float32``), and a row-wise state is kept once
per row of every shard: a table cut into k column pieces holds k of them.
"""

from dataclasses import dataclass

STATE_ELEMENT_BYTES = 4  # fp32


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """How much state an optimizer keeps."""

    name: str
    states_per_element: int  # fp32 numbers per weight
    states_per_row: int  # fp32 numbers per row of each shard

    @property
    def element_bytes(self) -> int:
        """State bytes per weight."""
        return self.states_per_element * STATE_ELEMENT_BYTES

    @property
    def row_bytes(self) -> int:
        """State bytes per row of a shard."""
        return self.states_per_row * STATE_ELEMENT_BYTES

    def state_bytes(self, num_rows: int, num_columns: int) -> int:
        """State bytes of one shard."""
        return num_rows * (num_columns * self.element_bytes + self.row_bytes)


OPTIMIZERS: dict[str, Optimizer] = {
    kind.name: kind
    for kind in (
        Optimizer(name="none", states_per_element=0, states_per_row=0),  # inference: no updates
        Optimizer(name="sgd", states_per_element=0, states_per_row=0),
        Optimizer(name="rowwise_adagrad", states_per_element=0, states_per_row=1),
        Optimizer(name="adagrad", states_per_element=1, states_per_row=0),
        Optimizer(name="lars_sgd", states_per_element=1, states_per_row=0),
        Optimizer(name="adam", states_per_element=2, states_per_row=0),
        Optimizer(name="lamb", states_per_element=2, states_per_row=0),
        Optimizer(name="partial_rowwise_adam", states_per_element=1, states_per_row=1),
        Optimizer(name="partial_rowwise_lamb", states_per_element=1, states_per_row=1),
    )
}
