"""PyTorch's own embedding bags with sparse gradients: not fused, the last resort where nothing better is installed."""

from collections.abc import Sequence
from typing import Any

from api.cli.measuring.lookup_design import DataType, TableDesign
from api.cli.measuring.training_constants import EPSILON, INITIAL_WEIGHT, LEARNING_RATE


class EmbeddingBags:
    """One call per table; gradients are merged by row, then row-wise AdaGrad updates those rows."""

    def __init__(self, tables: Sequence[TableDesign], data_type: DataType, device: str) -> None:
        import torch

        self._torch = torch
        self.weights = [
            torch.full(
                (table.rows, table.columns),
                INITIAL_WEIGHT,
                dtype=torch.float16 if data_type == "fp16" else torch.float32,
                device=device,
                requires_grad=True,
            )
            for table in tables
        ]
        self._squares = [torch.zeros(table.rows, device=device) for table in tables]

    def forward(self, ids: Any, offsets: Any) -> Any:
        """See ``FusedTables``."""
        samples = (len(offsets) - 1) // len(self.weights)
        sums = []
        for place, weights in enumerate(self.weights):
            bags = offsets[place * samples : (place + 1) * samples + 1]
            some = ids[bags[0] : bags[-1]]
            sums.append(
                self._torch.nn.functional.embedding_bag(
                    some, weights, bags - bags[0], mode="sum", sparse=True, include_last_offset=True
                ).float()
            )
        return self._torch.cat(sums, dim=1)

    def backward(self, output: Any, gradient: Any) -> None:
        """See ``FusedTables``."""
        output.backward(gradient)
        with self._torch.no_grad():
            for weights, squares in zip(self.weights, self._squares, strict=True):
                merged = weights.grad.coalesce()
                rows, values = merged.indices()[0], merged.values().float()
                squares[rows] += values.square().mean(dim=1)
                step = LEARNING_RATE * values / (squares[rows].sqrt() + EPSILON)[:, None]
                weights.index_add_(0, rows, -step.to(weights.dtype))
                weights.grad = None
