"""Fused embedding lookups of this machine: FBGEMM where it is installed, else PyTorch's own.

Each takes the ids of all tables, table by table, and offsets of (table, sample) bags, as FBGEMM does; sums the bags;
and updates the rows by row-wise AdaGrad in its backward pass.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Protocol

from api.cli.measuring.lookup_design import DataType, LookupLaunch, TableDesign


class FusedTables(Protocol):
    """Tables that one launch looks up together."""

    def forward(self, ids: Any, offsets: Any) -> Any:
        """Return the sums of all bags, shape (samples, columns of all tables)."""
        ...

    def backward(self, output: Any, gradient: Any) -> None:
        """Take the gradient of what ``forward`` returned, and update the rows that were looked up."""
        ...


#: Tables, the type of their weights and a device, to tables that can be looked up.
Builder = Callable[[Sequence[TableDesign], DataType, str], FusedTables]


class Implementation:
    """A way to look up embeddings: what it is called, which library it is of, how tables are built."""

    def __init__(self, name: str, distribution: str, build: Builder) -> None:
        self.name, self._build = name, build
        self.library = f"{distribution.removesuffix('_cpu')} {version(distribution)}"

    def build(self, launch: LookupLaunch, device: str) -> FusedTables:
        """Return the tables of a launch."""
        return self._build(launch.tables, launch.data_type, device)


def best_implementation() -> Implementation:
    """Return the fastest implementation that is installed."""
    if find_spec("fbgemm_gpu") is not None:
        from api.cli.measuring.fbgemm_tbe import build

        return Implementation("fbgemm_tbe", _fbgemm_distribution(), build)
    from api.cli.measuring.embedding_bag import EmbeddingBags

    return Implementation("embedding_bag", "torch", EmbeddingBags)


def _fbgemm_distribution() -> str:
    from importlib.metadata import packages_distributions

    return packages_distributions()["fbgemm_gpu"][0].replace("-", "_")
