r"""Features of shards: counts as logarithms for the network, and products of counts for the physics.

Physics (:data:`TERMS`): seconds of a shard are a sum of non-negative multiples of these, as in
:mod:`cost_models.roofline`: with ``n`` lookups, ``u`` distinct rows, ``o`` outputs, ``R`` rows, ``r`` bytes of a row,
``s`` of its state, ``w`` of an output row and ``c(.)`` whole cache lines,

.. math:: 1,\ n,\ n r,\ n c(r),\ n \log_2 R,\ u,\ u r,\ u c(r),\ u s,\ o w

Weights of fewer than four bytes have terms of their own: libraries run other code for them. FBGEMM on CPUs takes four
times as long for the update of a short fp32 row as for that of an fp16 one, and as long where both are 192 columns
wide.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from cost_models.learned.columns import LookupColumns
from cost_models.protocol import Bools, Floats
from cost_models.table_memory import cache_lines

Singles = NDArray[np.float32]

FULL_WEIGHT_BYTES = 4.0


def has_narrow_weights(of: LookupColumns) -> Bools:
    """Tell whose weights take fewer than four bytes each."""
    narrow: Bools = of.row_bytes < FULL_WEIGHT_BYTES * of.shard_columns
    return narrow


#: What the network reads, each as ln(1 + count).
FEATURES: Mapping[str, Callable[[LookupColumns], Floats]] = MappingProxyType(
    {
        "lookups": lambda of: of.lookups,
        "distinct_rows": lambda of: of.distinct_rows,
        "row_bytes": lambda of: of.row_bytes,
        "output_row_bytes": lambda of: of.output_row_bytes,
        "outputs": lambda of: of.outputs,
        "state_bytes": lambda of: of.state_bytes,
        "shard_rows": lambda of: of.shard_rows,
        "narrow_weights": lambda of: has_narrow_weights(of).astype(np.float64),
    }
)
#: Features that may lower the seconds as they grow; more of any other never costs less. A larger table spreads the
#: same lookups and distinct rows over more memory, or has its hot rows closer together: measurements decide. So they do
#: between types of weights.
FREE_FEATURES = frozenset({"shard_rows", "narrow_weights"})

_TERMS_OF_ONE_TYPE: Mapping[str, Callable[[LookupColumns], Floats]] = MappingProxyType(
    {
        "shards": lambda of: np.ones_like(of.lookups),
        "lookups": lambda of: of.lookups,
        "gathered_bytes": lambda of: of.lookups * of.row_bytes,
        "gathered_line_bytes": lambda of: of.lookups * cache_lines(of.row_bytes),
        "sorted_bits": lambda of: of.lookups * np.log2(np.maximum(of.shard_rows, 2.0)),
        "distinct_rows": lambda of: of.distinct_rows,
        "updated_bytes": lambda of: of.distinct_rows * of.row_bytes,
        "updated_line_bytes": lambda of: of.distinct_rows * cache_lines(of.row_bytes),
        "state_bytes": lambda of: of.distinct_rows * of.state_bytes,
        "output_bytes": lambda of: of.outputs * of.output_row_bytes,
    }
)
_NARROW = "_narrow"
#: Each term for weights of four bytes and more, and again for those of fewer.
TERMS: tuple[str, ...] = (*_TERMS_OF_ONE_TYPE, *(name + _NARROW for name in _TERMS_OF_ONE_TYPE))


def feature_matrix(columns: LookupColumns, names: tuple[str, ...]) -> Singles:
    """Return ln(1 + count) of each feature, float32 of shape (num_shards, len(names))."""
    counts = np.empty((columns.num_shards, len(names)), dtype=np.float32)
    for i, name in enumerate(names):
        counts[:, i] = FEATURES[name](columns)
    return np.log1p(counts, out=counts)


def term_matrix(columns: LookupColumns, names: tuple[str, ...]) -> Floats:
    """Return the physics terms, shape (num_shards, len(names)); 0 for shards of the other type."""
    narrow = has_narrow_weights(columns)
    types = {True: narrow, False: ~narrow}
    is_there = {wanted: bool(np.any(shards)) for wanted, shards in types.items()}
    found: dict[str, Floats] = {}
    matrix = np.zeros((columns.num_shards, len(names)))
    for i, name in enumerate(names):
        bare, wanted = name.removesuffix(_NARROW), name.endswith(_NARROW)
        if not is_there[wanted]:
            continue
        if bare not in found:
            found[bare] = _TERMS_OF_ONE_TYPE[bare](columns)
        matrix[:, i] = found[bare] if not is_there[not wanted] else np.where(types[wanted], found[bare], 0.0)
    return matrix


def term_seconds(columns: LookupColumns, names: tuple[str, ...], seconds: Floats) -> Floats:
    """Return ``term_matrix(columns, names) @ seconds``, (num_shards, num_targets), without the matrix.

    ``seconds``: per unit of each term, shape (len(names), num_targets).
    """
    narrow = has_narrow_weights(columns)
    per_unit = {name: seconds[i] for i, name in enumerate(names)}
    nothing = np.zeros(seconds.shape[1])
    result = np.zeros((seconds.shape[1], columns.num_shards))
    all_narrow, any_narrow = bool(np.all(narrow)), bool(np.any(narrow))
    for bare, term in _TERMS_OF_ONE_TYPE.items():
        of_wide, of_narrow = per_unit.get(bare, nothing), per_unit.get(bare + _NARROW, nothing)
        if all_narrow or not any_narrow:
            factors = list(of_narrow if all_narrow else of_wide)
        else:
            factors = [np.where(narrow, low, high) for low, high in zip(of_narrow, of_wide, strict=True)]
        if not any(np.any(factor) for factor in factors):
            continue
        count = term(columns)
        for target, factor in zip(result, factors, strict=True):
            target += count * factor
    return np.ascontiguousarray(result.T)
