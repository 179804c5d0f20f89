"""Fused embedding lookups of this machine: FBGEMM where it is installed, else PyTorch's own.

Embeddings take the ids of all tables, table by table, and offsets of (table, sample) bags, as FBGEMM does. They return
the sums of all bags, shape (samples, columns of all tables); the backward pass of these sums updates the rows that were
looked up by row-wise AdaGrad.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import torch

from api.cli.measuring.lookup_design import DataType, TableDesign
from api.client.device_names import fbgemm_library

LEARNING_RATE = 0.01
EPSILON = 1e-8
#: What rows hold at first. It is written: memory that never was is one page of zeros, which no cache ever misses.
INITIAL_WEIGHT = 0.01

#: Takes ids and offsets, and returns sums.
Embeddings = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Implementation:
    """A way to look up embeddings: what it is called, which library it is of, how embeddings are built."""

    name: str
    library: str
    build: Callable[[Sequence[TableDesign], DataType, str], Embeddings]  # on a device


def best_implementation() -> Implementation:
    library = fbgemm_library()
    if library is None:
        return Implementation("embedding_bag", f"torch {version('torch')}", EmbeddingBags)
    return Implementation("fbgemm_tbe", library, fbgemm_embeddings)


def fbgemm_embeddings(tables: Sequence[TableDesign], data_type: DataType, device: str) -> Embeddings:
    """Return FBGEMM's table-batched embeddings, as TorchRec trains them, with fp32 output."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # FBGEMM uses what torch deprecates
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
    embeddings: Embeddings = module
    return embeddings


class EmbeddingBags:
    """PyTorch's embedding bags, one call per table: not fused, the last resort where nothing better is installed.

    Gradients are sparse; they are merged by row before those rows are updated.
    """

    def __init__(self, tables: Sequence[TableDesign], data_type: DataType, device: str) -> None:
        weights_type = torch.float16 if data_type == "fp16" else torch.float32
        self.weights = []
        for table in tables:
            shape = (table.rows, table.columns)
            weights = torch.full(shape, INITIAL_WEIGHT, dtype=weights_type, device=device, requires_grad=True)
            weights.register_post_accumulate_grad_hook(_Adagrad(torch.zeros(table.rows, device=device)))
            self.weights.append(weights)

    def __call__(self, ids: Any, offsets: Any) -> Any:
        samples = (len(offsets) - 1) // len(self.weights)
        sums = []
        for place, weights in enumerate(self.weights):
            bags = offsets[place * samples : (place + 1) * samples + 1]
            some = ids[bags[0] : bags[-1]]
            sums.append(
                torch.nn.functional.embedding_bag(
                    some, weights, bags - bags[0], mode="sum", sparse=True, include_last_offset=True
                ).float()
            )
        return torch.cat(sums, dim=1)


@dataclass(frozen=True, slots=True)
class _Adagrad:
    """Updates the rows of one table that have a gradient, as soon as it is there."""

    squares: Any  # (rows,), summed over steps

    def __call__(self, weights: Any) -> None:
        merged = weights.grad.coalesce()
        rows, values = merged.indices()[0], merged.values().float()
        self.squares[rows] += values.square().mean(dim=1)
        step = LEARNING_RATE * values / (self.squares[rows].sqrt() + EPSILON)[:, None]
        weights.index_add_(0, rows, -step.to(weights.dtype))
        weights.grad = None
