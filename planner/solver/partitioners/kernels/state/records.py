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
def pack_data(data: Data) -> Data:
    """Return the record of a problem's arrays."""
    return _PackedData(*data)


@compiled
def pack_state(state: State) -> State:
    """Return the record of a search's arrays."""
    return _PackedState(*state)
