"""Names of numpy's arrays in annotations, by what they hold. Imports nothing, so that solvers may use it, too."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]  # members of an enumeration, by number
Bools = NDArray[np.bool_]
