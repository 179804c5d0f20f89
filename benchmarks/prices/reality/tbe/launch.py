"""One launch of table batched embeddings, priced by the roofline model on a shipped profile."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cost_models.analytic.roofline import RooflineModel
from cost_models.collectives.starts import LAUNCHES, AnalyticStarts
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.profile_fields import FIELDS
from cost_models.hardware.profiles_loader import load_profile
from cost_models.protocol import ShardWork
from cost_models.vocabulary import Kernel, Phase, Scheme

#: Words in the name of a GPU, and the profile of its generation. The first one that fits counts.
PROFILES = (
    ("H100", "dgx-h100-80g"),
    ("H200", "dgx-h200-141g"),
    ("PG509-200", "zionex-a100-40g"),
    ("A100-SXM4-40GB", "zionex-a100-40g"),
    ("A100-SXM4-80GB", "dgx-a100-80g"),
    ("B200", "dgx-b200-180g"),
    ("MI350", "mi350x-8x-400g"),
    ("MI300", "mi300x-8x-400g"),
    ("V100", "zionex-prototype-v100-32g"),
    # TorchRec's forward benchmark does not name its GPU: the profile that gathers rows as fast.
    ("Meta devgpu; rates imply HBM >= 2 TB/s", "dgx-a100-80g"),
)
ELEMENT_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0, "int8": 1.0}
#: What no table and no launch has more of.
MOST_TABLES, MOST_ROWS, MOST_COLUMNS = 100_000, 2**40, 2**14
#: Bytes of state per weight, and per row.
STATE_BYTES = {
    "sgd": (0.0, 0.0),
    "exact_sgd": (0.0, 0.0),
    "adam": (8.0, 0.0),
    "exact_adagrad": (4.0, 0.0),
    "adagrad": (4.0, 0.0),
    "exact_row_wise_adagrad": (0.0, 4.0),
    "rowwise_adagrad": (0.0, 4.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What one table does in a launch."""

    rows: int
    columns: int
    lookups: float
    outputs: float  # rows written
    distinct: float  # NaN where nothing is known
    element_bytes: float = 4.0
    output_element_bytes: float = 4.0
    optimizer: str = "exact_row_wise_adagrad"
    is_pooled: bool = True
    is_weighted: bool = False
    kernel: Kernel = Kernel.FUSED
    cache_load_factor: float = np.nan
    missed_share: float = np.nan


def profile_of(gpu: str) -> str | None:
    """Return the shipped profile of a GPU by its name; None if there is none."""
    return next((profile for words, profile in PROFILES if words in gpu), None)


def kernel_seconds(profile: str, tables: Sequence[Table]) -> tuple[float, float]:
    """Return the seconds of the kernels of a launch, with what has to happen before it, forward and backward.

    Starts of kernels are left out. The GPU is alone on its host, and so has all of the host's memory.
    """
    seconds = RooflineModel().predict(_work(tables), _alone(load_profile(profile))).seconds.sum(axis=0)
    forward = seconds[Phase.PREFETCH] + seconds[Phase.FORWARD_COMPUTE]
    return float(forward), float(seconds[Phase.BACKWARD_COMPUTE])


def launch_seconds(profile: str, tables: Sequence[Table]) -> tuple[float, float]:
    """Return the same with the starts of all kernels of the forward and of the backward pass."""
    hardware = load_profile(profile)
    forward, backward = kernel_seconds(profile, tables)
    starts = AnalyticStarts()
    return (
        forward + starts.launches(Phase.FORWARD_COMPUTE, LAUNCHES[Phase.FORWARD_COMPUTE], hardware).seconds,
        backward + starts.launches(Phase.BACKWARD_COMPUTE, LAUNCHES[Phase.BACKWARD_COMPUTE], hardware).seconds,
    )


def _alone(hardware: Hardware) -> Hardware:
    name = "ddr_bytes_per_second"
    share = hardware.numbers[name].value
    return hardware.with_overrides({name: share * hardware.ranks_per_host}, {name: FIELDS[name].unit})


def _work(tables: Sequence[Table]) -> ShardWork:
    def floats(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array(values, dtype=np.float64)

    def flags(values: Sequence[bool]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.array(values, dtype=np.bool_)

    count = len(tables)
    rows = np.array([table.rows for table in tables], dtype=np.int64)
    columns = np.array([table.columns for table in tables], dtype=np.int64)
    lookups, outputs = floats([table.lookups for table in tables]), floats([table.outputs for table in tables])
    element_state, row_state = zip(*(STATE_BYTES[table.optimizer] for table in tables), strict=True)
    return ShardWork(
        num_ranks=1,
        ranks_per_host=1,
        prefetches=False,
        forward_message_bytes=0.0,
        backward_message_bytes=0.0,
        id_message_bytes=0.0,
        scheme=np.full(count, Scheme.TABLE_WISE, dtype=np.int8),
        kernel=np.array([table.kernel for table in tables], dtype=np.int8),
        table_rows=rows,
        table_columns=columns,
        shard_rows=rows,
        shard_columns=columns,
        launch_columns=np.full(count, max(table.columns for table in tables), dtype=np.float64),
        row_shards=np.ones(count, dtype=np.int64),
        element_bytes=floats([table.element_bytes for table in tables]),
        row_overhead_bytes=np.zeros(count),
        row_alignment_bytes=np.ones(count),
        optimizer_element_bytes=floats(element_state),
        optimizer_row_bytes=floats(row_state),
        batch_ids=lookups,
        batch_outputs=outputs,
        expected_outputs=outputs,
        lookups=lookups,
        distinct_rows=floats([table.distinct for table in tables]),
        cache_load_factor=floats([table.cache_load_factor for table in tables]),
        missed_share=floats([table.missed_share for table in tables]),
        hot_lookup_share=np.zeros(count),
        hot_distinct_share=np.zeros(count),
        hot_row_share=np.zeros(count),
        slot_lookup_bytes=np.zeros(count),
        slot_upkeep_bytes=np.zeros(count),
        slot_launches=np.zeros(count),
        in_scm=np.zeros(count, dtype=np.bool_),
        is_weighted=flags([table.is_weighted for table in tables]),
        is_pooled=flags([table.is_pooled for table in tables]),
        is_trained=np.ones(count, dtype=np.bool_),
        output_element_bytes=floats([table.output_element_bytes for table in tables]),
        forward_comm_element_bytes=np.full(count, np.nan),
        backward_comm_element_bytes=np.full(count, np.nan),
    )
