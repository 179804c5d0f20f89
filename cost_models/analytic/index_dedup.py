r"""What it takes to leave out repeated ids of sequences before their exchange, and to repeat the rows that come back.

Every rank does so with its own batch, whatever lies where. With ``n`` ids of a table in the batch, ``u`` of them
distinct, and rows of ``r`` bytes as they come back, the bytes of a GPU's memory are

- ``input_comm``: ids are numbered over all tables, sorted with their places, compared with their neighbours and summed,
  and each id gets the place of its row [1]: ``372 n + 24 u``, most of them eight passes over pairs of 16 bytes;
- ``forward_comm``: rows are repeated where their ids were, ``n (8 + 2 r)``;
- ``backward_comm``: gradients of a row's repeats are added up, ``n (8 + 3 r) + u r``: each is read, and added to a row
  that is read and written [2].

None of it was measured. FBGEMM's operator exists for GPUs alone.

References
----------
.. [1] FBGEMM ``jagged_unique_indices.cu``: linear ids, ``at::_unique`` with inverse, lengths, ids of tables. PyTorch
   ``UniqueCub.cu``: a radix sort of 64-bit pairs with 8 bits per pass, differences of neighbours, their sum, a scatter
   to places (a sector of 32 bytes each), and the unique ids. Later FBGEMM sorts fewer bits.
.. [2] PyTorch ``index_select``, whose gradient is ``index_add`` to zeros.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.gpu_memory import is_gpu
from cost_models.analytic.sizes import ID_BYTES
from cost_models.analytic.slots import COUNTED_ERROR
from cost_models.analytic.table_memory import table_memory
from cost_models.arrays import Codes, Floats, freeze
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.vocabulary import NUM_PHASES, Evidence, Phase

#: Read and written per id: numbered 16, its place 8, sorted 8 + 8 x 32, compared 12, summed 16, scattered 48, kept 8.
UNIQUE_BYTES_PER_ID = 372.0
#: Written as it is kept, and renumbered within its table.
UNIQUE_BYTES_PER_ROW = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupSeconds:
    """Seconds that every rank spends in each phase, and how well they are known."""

    seconds: Floats  # (NUM_PHASES,)
    evidence: Codes  # (NUM_PHASES,); entries of zero seconds carry MEASURED

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        freeze(self)


def has_dedup(hardware: Hardware) -> bool:
    """Whether the devices have FBGEMM's operator that leaves out repeated ids."""
    return is_gpu(hardware)


def dedup_seconds(batch_ids: Floats, unique_ids: Floats, row_bytes: Floats, hardware: Hardware) -> DedupSeconds:
    """Return what deduplication takes.

    Parameters
    ----------
    batch_ids, unique_ids
        Ids of a rank's batch before and after repeats are left out, one entry per table, shape (num_tables,).
    row_bytes
        Bytes of a row as it comes back to the rank of its sample, (num_tables,).
    hardware
        The rank's device.

    Raises
    ------
    MissingHardwareNumber
        The rate of the device's memory is not known.
    """
    memory = table_memory(hardware)
    second = Quantity(
        value=1.0,
        unit="seconds",
        evidence=Evidence.ESTIMATED,
        source="Bytes counted operation by operation",
        relative_error=COUNTED_ERROR,
    ).at_limit(hardware.limit)
    moved = {
        Phase.INPUT_COMM: batch_ids * UNIQUE_BYTES_PER_ID + unique_ids * UNIQUE_BYTES_PER_ROW,
        Phase.FORWARD_COMM: batch_ids * (ID_BYTES + 2 * row_bytes),
        Phase.BACKWARD_COMM: batch_ids * (ID_BYTES + 3 * row_bytes) + unique_ids * row_bytes,
    }
    seconds = np.zeros(NUM_PHASES)
    for phase, moved_bytes in moved.items():
        seconds[phase] = float(np.sum(moved_bytes)) / memory.rate.value * second.value
    evidence = np.where(seconds > 0, np.int8(Evidence.ESTIMATED), np.int8(Evidence.MEASURED))
    return DedupSeconds(seconds=seconds, evidence=evidence)
