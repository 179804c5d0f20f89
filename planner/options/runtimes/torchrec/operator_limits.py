"""How many samples an FBGEMM operator for GPUs can distinguish: it counts features and samples in 32 bits together.

References
----------
FBGEMM 1.8.0 ``get_infos_metadata``, which the tests call: "Not enough infos bits to accommodate T and B".
"""

_BITS = 32


def most_samples(num_features: int) -> int:
    """Return the samples of all ranks that an operator of so many features takes in a step at most."""
    return (1 << (_BITS - num_features.bit_length())) - 1
