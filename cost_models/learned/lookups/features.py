r"""Features of shards: counts as logarithms for the network, and products of counts for the physics.

Physics (:data:`TERMS`): seconds of a shard are a sum of non-negative multiples of these, as in
:mod:`cost_models.analytic.roofline`: with ``n`` lookups, ``u`` distinct rows, ``o`` outputs, ``R`` rows, ``r`` bytes of
a row, ``s`` of its state, ``w`` of an output row and ``c(.)`` whole cache lines,

.. math:: 1,\ n,\ n r,\ n c(r),\ n \log_2 R,\ n \lceil \log_2 R / 8 \rceil,\ u,\ u r,\ u c(r),\ u s,
          \ o,\ o w,\ f,\ f w,\ n w

where :math:`f = o (1 - e^{-n / o})` are the outputs that have a row at all: with about one lookup for each,
processors guess wrongly how often the loop over the ids of a sample runs.

An access costs more the less of its working set the caches hold: of ``W`` bytes a cache of about ``C`` misses
:math:`W / (W + C)`. Each access comes again with that factor for four sizes of caches and the set it goes to: gathers
and updates to the lines of the distinct rows (:math:`u c(r)`), updates' reads of gradients to those of the outputs
(:math:`o w`), and all to the pages of the table (:math:`R r`). No size is that of a device: the fit chooses.

Weights of fewer than four bytes have terms of their own: libraries run other code for them. FBGEMM on CPUs takes four
times as long for the update of a short fp32 row as for that of an fp16 one, and as long where both are 192 columns
wide.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np

from cost_models.analytic.table_memory import cache_lines
from cost_models.arrays import Bools, Floats, Ints, Singles
from cost_models.learned.lookups.columns import LookupColumns

FULL_WEIGHT_BYTES = 4.0
#: Shards at a time: their counts and terms stay in the processor's cache.
BLOCK_SHARDS = 1024


def has_narrow_weights(of: LookupColumns) -> Bools:
    """Return whose weights take fewer than four bytes each."""
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

#: Bytes of caches, by the names that terms have for them.
_CACHES: Mapping[str, float] = MappingProxyType({"256k": 2.0**18, "2m": 2.0**21, "16m": 2.0**24, "128m": 2.0**27})


class _Counts:
    """What terms are made of; each is counted once, when it is asked for."""

    def __init__(self, of: LookupColumns) -> None:
        self.of = of
        self._accesses: dict[str, Floats] = {}
        self._missed: dict[tuple[str, str], Floats] = {}

    @cached_property
    def line_bytes(self) -> Floats:
        """Whole cache lines of a row."""
        return cache_lines(self.of.row_bytes)

    @cached_property
    def id_bits(self) -> Floats:
        """Bits of a row's number, by which lookups are sorted before updates: bit by bit, or byte by byte."""
        bits: Floats = np.log2(np.maximum(self.of.shard_rows, 2.0))
        return bits

    @cached_property
    def filled_outputs(self) -> Floats:
        """Outputs with a row at all, where lookups fall onto outputs by chance."""
        of_each = self.of.lookups / np.maximum(self.of.outputs, 1.0)
        filled: Floats = -np.expm1(-of_each) * self.of.outputs
        return filled

    @cached_property
    def rows_set(self) -> Floats:
        """Bytes that gathers and updates go to: the lines of the distinct rows."""
        return self.of.distinct_rows * self.line_bytes

    @cached_property
    def outputs_set(self) -> Floats:
        """Bytes of the outputs, and of their gradients, which updates read row by row."""
        return self.of.outputs * self.of.output_row_bytes

    @cached_property
    def table_set(self) -> Floats:
        """Bytes of the table: the more pages its rows lie on, the fewer addresses of pages are at hand."""
        return self.of.shard_rows * self.of.row_bytes

    def accesses(self, name: str) -> Floats:
        """Return a term that knows no cache."""
        if name not in self._accesses:
            self._accesses[name] = _TERMS_OF_ONE_TYPE[name](self)
        return self._accesses[name]

    def missed(self, of_set: str, cache: str) -> Floats:
        """Return the part of the accesses to a working set that a cache misses, from 0 to 1."""
        key = (of_set, cache)
        if key not in self._missed:
            held: Floats = getattr(self, f"{of_set}_set")
            self._missed[key] = held / (held + _CACHES[cache])
        return self._missed[key]


#: What an access costs, whatever it finds where.
_TERMS_OF_ONE_TYPE: Mapping[str, Callable[[_Counts], Floats]] = MappingProxyType(
    {
        "shards": lambda has: np.ones_like(has.of.lookups),
        "lookups": lambda has: has.of.lookups,
        "gathered_bytes": lambda has: has.of.lookups * has.of.row_bytes,
        "gathered_line_bytes": lambda has: has.of.lookups * has.line_bytes,
        "sorted_bits": lambda has: has.of.lookups * has.id_bits,
        "sorted_bytes": lambda has: has.of.lookups * np.ceil(has.id_bits / 8),
        "distinct_rows": lambda has: has.of.distinct_rows,
        "updated_bytes": lambda has: has.of.distinct_rows * has.of.row_bytes,
        "updated_line_bytes": lambda has: has.of.distinct_rows * has.line_bytes,
        "state_bytes": lambda has: has.of.distinct_rows * has.of.state_bytes,
        "output_bytes": lambda has: has.outputs_set,
        "outputs": lambda has: has.of.outputs,
        "filled_outputs": lambda has: has.filled_outputs,
        "filled_output_bytes": lambda has: has.filled_outputs * has.of.output_row_bytes,
        "gradient_bytes": lambda has: has.of.lookups * has.of.output_row_bytes,
    }
)
#: What is accessed in which working set.
_IN_SETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "rows": ("lookups", "gathered_line_bytes", "distinct_rows", "updated_line_bytes"),
        "outputs": ("lookups", "gradient_bytes", "output_bytes"),
        "table": ("lookups", "distinct_rows", "updated_line_bytes"),
    }
)
#: Terms whose accesses miss a cache: which accesses, to which set, which cache.
_MISSES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        f"{accesses}_of_{of_set}_beyond_{cache}": (accesses, of_set, cache)
        for of_set, all_accesses in _IN_SETS.items()
        for accesses in all_accesses
        for cache in _CACHES
    }
)
_ALL_OF_ONE_TYPE: tuple[str, ...] = (*_TERMS_OF_ONE_TYPE, *_MISSES)
_NARROW = "_narrow"
#: Each term for weights of four bytes and more, and again for those of fewer.
TERMS: tuple[str, ...] = (*_ALL_OF_ONE_TYPE, *(name + _NARROW for name in _ALL_OF_ONE_TYPE))


def _write_term(name: str, has: _Counts, into: Floats) -> None:
    """Write a term of shards of one type into an array of shape (num_shards,)."""
    if name not in _MISSES:
        into[:] = has.accesses(name)
        return
    accesses, of_set, cache = _MISSES[name]
    np.multiply(has.accesses(accesses), has.missed(of_set, cache), out=into)


def _terms_of_type(columns: LookupColumns, names: Sequence[str]) -> Floats:
    """Return terms of shards of one type, shape (len(names), num_shards)."""
    has, terms = _Counts(columns), np.empty((len(names), columns.num_shards))
    for name, into in zip(names, terms, strict=True):
        _write_term(name.removesuffix(_NARROW), has, into)
    return terms


def _by_type(columns: LookupColumns, names: tuple[str, ...]) -> Iterator[tuple[Ints, LookupColumns, list[int]]]:
    """Yield the shards of each type, if there are any, and the positions of the terms that are theirs."""
    narrow = has_narrow_weights(columns)
    for is_narrow in (False, True):
        shards = np.flatnonzero(narrow == is_narrow)
        if len(shards):
            some = columns if len(shards) == columns.num_shards else columns.take(shards)
            yield shards, some, [i for i, name in enumerate(names) if name.endswith(_NARROW) == is_narrow]


def feature_matrix(columns: LookupColumns, names: tuple[str, ...]) -> Singles:
    """Return ln(1 + count) of each feature, float32 of shape (num_shards, len(names))."""
    counts = np.empty((columns.num_shards, len(names)), dtype=np.float32)
    for i, name in enumerate(names):
        counts[:, i] = FEATURES[name](columns)
    return np.log1p(counts, out=counts)


def term_matrix(columns: LookupColumns, names: tuple[str, ...]) -> Floats:
    """Return the physics terms, shape (num_shards, len(names)); 0 for shards of the other type."""
    matrix = np.zeros((columns.num_shards, len(names)))
    for shards, some, mine in _by_type(columns, names):
        matrix[shards[:, None], mine] = _terms_of_type(some, [names[i] for i in mine]).T
    return matrix


def term_seconds(columns: LookupColumns, names: tuple[str, ...], seconds: Floats) -> Floats:
    """Return ``term_matrix(columns, names) @ seconds``, (num_shards, num_targets), without the matrix.

    ``seconds``: per unit of each term, shape (len(names), num_targets).
    """
    result = np.zeros((columns.num_shards, seconds.shape[1]))
    for shards, some, mine in _by_type(columns, names):
        mine = [i for i in mine if np.any(seconds[i])]
        for start in range(0, len(shards), BLOCK_SHARDS):
            block = slice(start, start + BLOCK_SHARDS)
            terms = _terms_of_type(some.take(block), [names[i] for i in mine])
            result[shards[block]] = terms.T @ seconds[mine]
    return result
