"""FBGEMM's table-batched embeddings, as TorchRec trains them."""

import warnings
from collections.abc import Sequence
from typing import Any

from api.cli.measuring.lookup_design import DataType, TableDesign
from api.cli.measuring.training_constants import EPSILON, INITIAL_WEIGHT, LEARNING_RATE


class FbgemmTables:
    """Tables of one ``SplitTableBatchedEmbeddingBagsCodegen``."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def forward(self, ids: Any, offsets: Any) -> Any:
        """See ``FusedTables``."""
        return self._module(ids, offsets)

    def backward(self, output: Any, gradient: Any) -> None:
        """See ``FusedTables``: the update of the rows is part of FBGEMM's backward pass."""
        output.backward(gradient)


def build(tables: Sequence[TableDesign], data_type: DataType, device: str) -> FbgemmTables:
    """Return tables with weights of ``data_type``, fp32 output and row-wise AdaGrad."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # FBGEMM uses what torch deprecates
        import torch
        from fbgemm_gpu import split_table_batched_embeddings_ops_training as training
        from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode

    is_cuda = device.startswith("cuda")
    location = EmbeddingLocation.DEVICE if is_cuda else EmbeddingLocation.HOST
    compute = training.ComputeDevice.CUDA if is_cuda else training.ComputeDevice.CPU
    module = training.SplitTableBatchedEmbeddingBagsCodegen(
        [(table.rows, table.columns, location, compute) for table in tables],
        optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD,
        learning_rate=LEARNING_RATE,
        eps=EPSILON,
        pooling_mode=PoolingMode.SUM,
        weights_precision=SparseType.FP16 if data_type == "fp16" else SparseType.FP32,
        stochastic_rounding=False,
        output_dtype=SparseType.FP32,
        device=torch.device(device),
    )
    for weights in module.split_embedding_weights():
        weights.fill_(INITIAL_WEIGHT)
    return FbgemmTables(module)
