"""Data types of table weights and of messages."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DataType:
    """How one number, and one row of numbers, is stored."""

    name: str
    element_bytes: float
    #: scale and bias that each row of a quantised table carries, bytes
    row_overhead_bytes: int = 0
    #: whether a fused optimizer can update weights of this type
    trainable: bool = True

    def row_bytes(self, num_columns: int) -> float:
        """Bytes of one stored row of ``num_columns`` weights."""
        return num_columns * self.element_bytes + self.row_overhead_bytes


#: Quantised rows carry an fp16 scale and an fp16 bias, 4 bytes
#: (FBGEMM ``fbgemm_gpu/split_embedding_configs.py``, ``SparseType``).
DATA_TYPES: dict[str, DataType] = {
    kind.name: kind
    for kind in (
        DataType(name="fp32", element_bytes=4),
        DataType(name="fp16", element_bytes=2),
        DataType(name="bf16", element_bytes=2),
        DataType(name="int8", element_bytes=1, row_overhead_bytes=4, trainable=False),
        DataType(name="int4", element_bytes=0.5, row_overhead_bytes=4, trainable=False),
        DataType(name="int2", element_bytes=0.25, row_overhead_bytes=4, trainable=False),
    )
}
