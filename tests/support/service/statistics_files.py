"""Statistics for tests."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from api.specs.references.statistics_document import Statistics
from tests.support.planning.id_streams import in_batches, sketched, zipf

ROWS = 1_000


def statistics(
    *tables: str, alpha: float = 1.0, seed: int = 0, lookups: int = 20_000, hash_seed: int = 0
) -> Statistics:
    """Statistics of power laws."""
    stream = zipf(alpha, ROWS, lookups, seed)
    return Statistics(
        sketches={name: sketched(in_batches(stream, 1_000), table=name, seed=hash_seed) for name in tables}
    )


def idle(table: str) -> Statistics:
    """Statistics of a table that is never looked up."""
    return Statistics(sketches={table: sketched([np.zeros(0, dtype=np.int64)], table=table)})


def document(*tables: str, **options: Any) -> Mapping[str, Any]:
    """A statistics document."""
    return statistics(*tables, **options).document
