"""Problem data and search state as single records, so that compiled functions pass one pointer.

A tuple of forty arrays would be copied at every call of a compiled function, and takes a minute
to compile. A record shares the memory of the arrays that it is packed from: Python reads and writes them there.
"""

from typing import Any

from numba import types
from numba.experimental import structref

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.state.state import State
from planner.solver.partitioners.local_search.search_data import Data


class _Record(types.StructRef):
    def preprocess_fields(self, fields: Any) -> tuple[tuple[str, Any], ...]:
        """Take literal types for what they are types of."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


@structref.register
class _DataType(_Record):
    """Compile-time type of a packed Data."""


@structref.register
class _StateType(_Record):
    """Compile-time type of a packed State."""


class _PackedData(structref.StructRefProxy):
    """A packed Data in Python's hands."""


class _PackedState(structref.StructRefProxy):
    """A packed State in Python's hands."""


structref.define_proxy(_PackedData, _DataType, list(Data._fields))
structref.define_proxy(_PackedState, _StateType, list(State._fields))


@compiled
def pack_data(d: Data) -> Data:
    """Return the record of a problem's arrays."""
    return _PackedData(
        d.item_columns,
        d.item_fixed,
        d.item_family,
        d.item_option,
        d.item_slot,
        d.family_scope,
        d.family_same_host,
        d.family_min_pieces,
        d.family_max_pieces,
        d.family_shape,
        d.family_narrowest,
        d.shape_columns,
        d.shape_seconds,
        d.shape_bytes,
        d.option_family,
        d.option_unit,
        d.unit_shape,
        d.rank_class,
        d.rank_host,
        d.capacity,
        d.allowed,
        d.host_allowed,
        d.apart_first,
        d.apart_item,
        d.slot_item,
        d.weight,
        d.window,
        d.columns_before,
        d.column_bytes,
        d.shape_item,
        d.shape_moved,
        d.home_family,
        d.home_pieces,
        d.home_shape,
        d.home_site,
        d.move,
    )


@compiled
def pack_state(s: State) -> State:
    """Return the record of a search's arrays."""
    return _PackedState(
        s.slot_shape,
        s.slot_site,
        s.num_pieces,
        s.family,
        s.loads,
        s.bytes,
        s.world_loads,
        s.world_bytes,
        s.weights,
        s.sums,
        s.reference,
        s.tau,
        s.over,
        s.site_slots,
        s.site_count,
        s.slot_place,
        s.touched,
        s.stamp,
        s.old_loads,
        s.old_bytes,
        s.old_weights,
        s.old_over,
        s.old_sums,
        s.old_world,
        s.old_world_bytes,
        s.counters,
        s.old_counters,
        s.saved_shape,
        s.saved_site,
        s.gain,
        s.price,
        s.gained,
        s.site_weights,
        s.columns_here,
        s.movements,
        s.seed,
    )
