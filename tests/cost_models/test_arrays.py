from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats, sharing_arrays


@dataclass(frozen=True)
class Columns:
    first: Floats
    second: Floats
    name: str


def test_equal_arrays_exist_once_and_all_else_stays() -> None:
    one = Columns(first=np.arange(3.0), second=np.arange(4.0), name="one")
    other = Columns(first=np.arange(3.0), second=np.arange(5.0), name="other")
    found = sharing_arrays(one, other)
    assert found.first is other.first
    assert found.second is one.second
    assert found.name == "one"
