"""Every number that a hardware profile may hold: its name, unit and meaning.

The same names are the keys of ``hardware.overrides`` in a spec. All are per rank.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class ProfileField(NamedTuple):
    """Unit and meaning of one number of a profile."""

    unit: str  # "bytes", "bytes_per_second", "operations_per_second", "flops_per_second", "seconds" or "share"
    description: str

    @property
    def may_be_zero(self) -> bool:
        """Whether zero makes sense: a tier may be absent, a rate of zero only means it is unknown."""
        return not self.unit.endswith("_per_second") and self.unit != "share"


_BYTES, _RATE, _SECONDS, _OPERATIONS = "bytes", "bytes_per_second", "seconds", "operations_per_second"
_FLOPS, _SHARE = "flops_per_second", "share"

FIELDS: Mapping[str, ProfileField] = MappingProxyType(
    {
        "bf16_flops_per_second": ProfileField(_FLOPS, "bf16 rate of the data sheet, dense matrices"),
        "fp16_flops_per_second": ProfileField(_FLOPS, "fp16 rate of the data sheet, dense matrices"),
        "tf32_flops_per_second": ProfileField(_FLOPS, "tf32 rate of the data sheet, dense matrices"),
        "fp32_flops_per_second": ProfileField(_FLOPS, "fp32 rate of the data sheet"),
        "dense_efficiency": ProfileField(
            _SHARE, "share of the rate of the data sheet that the dense part of a model sustains"
        ),
        "step_overhead_seconds": ProfileField(
            _SECONDS, "what a whole step takes beyond lookups, messages and dense compute; 0 where not given"
        ),
        "hbm_bytes": ProfileField(_BYTES, "accelerator memory of one rank; 0 where tables live in DDR"),
        "hbm_bytes_per_second": ProfileField(
            _RATE, "accelerator memory rate while it gathers rows of at least 512 bytes at random"
        ),
        "hbm_peak_bytes_per_second": ProfileField(_RATE, "accelerator memory rate of the data sheet"),
        "hbm_stream_bytes_per_second": ProfileField(_RATE, "accelerator memory rate of a long copy"),
        "l2_bytes": ProfileField(
            _BYTES, "cache of a GPU between its kernels and its memory, the last before the memory"
        ),
        "l2_bytes_per_second": ProfileField(_RATE, "rate at which a GPU's kernels read rows again that its L2 holds"),
        "lookup_seconds": ProfileField(
            _SECONDS, "what a GPU's forward kernel takes at least for a lookup whose row comes from the memory"
        ),
        "repeated_lookup_seconds": ProfileField(
            _SECONDS, "what a GPU's forward kernel takes at least for a lookup whose row a cache holds"
        ),
        "sequence_lookup_seconds": ProfileField(
            _SECONDS, "what a GPU's forward kernel of sequences takes at least for every row that it writes"
        ),
        "bag_seconds": ProfileField(_SECONDS, "what a GPU's forward kernel takes for every bag besides"),
        "index_lookup_seconds": ProfileField(
            _SECONDS, "checking and permuting an id after the exchange of ids, before a GPU's forward kernel"
        ),
        "bucketize_lookup_seconds": ProfileField(
            _SECONDS, "finding the rank of an id before the exchange, where ranks share rows; 0 where not given"
        ),
        "backward_lookup_seconds": ProfileField(
            _SECONDS, "what a GPU's backward kernels take for every lookup besides the sort and the gradient row"
        ),
        "gradient_row_seconds": ProfileField(
            _SECONDS, "least time that a GPU's backward kernels take for a gradient row that they read first"
        ),
        "update_bytes_per_second": ProfileField(
            _RATE, "rate at which a GPU's backward kernels read and write distinct rows with their optimizer state"
        ),
        "update_row_seconds": ProfileField(
            _SECONDS, "least time that a GPU's backward kernels take for a distinct row, however narrow it is"
        ),
        "update_column_seconds": ProfileField(
            _SECONDS, "the same for each column of a row with row-wise state; half as long beyond 128 columns"
        ),
        "moment_row_seconds": ProfileField(_SECONDS, "the same for a row with two moments (Adam, LAMB)"),
        "cache_lookup_seconds": ProfileField(
            _SECONDS, "finding an id in a cache in a GPU's memory, with the changes to what the cache knows of its rows"
        ),
        "kernel_launch_seconds": ProfileField(
            _SECONDS, "start of a kernel, of a small one all of its time; a fact that no price of a shard contains"
        ),
        "forward_start_seconds": ProfileField(
            _SECONDS, "start of all kernels of a forward lookup, in place of their launches"
        ),
        "backward_start_seconds": ProfileField(
            _SECONDS, "start of all kernels of a backward pass of some thousand ids, in place of their launches"
        ),
        "ddr_bytes": ProfileField(_BYTES, "host memory, one rank's share"),
        "ddr_bytes_per_second": ProfileField(
            _RATE, "host memory rate while it gathers rows (of a stream where only that is known), one rank's share"
        ),
        "ddr_peak_bytes_per_second": ProfileField(_RATE, "host memory rate of the data sheet, one rank's share"),
        "ddr_stream_bytes_per_second": ProfileField(_RATE, "host memory rate of a long copy, one rank's share"),
        "host_link_bytes_per_second": ProfileField(_RATE, "rate of copies from host memory to the accelerator"),
        "host_link_return_bytes_per_second": ProfileField(_RATE, "rate of copies from the accelerator to host memory"),
        "host_link_gather_bytes_per_second": ProfileField(
            _RATE, "rate at which kernels read rows of host memory; of copies where not given"
        ),
        "host_link_update_bytes_per_second": ProfileField(
            _RATE,
            "rate at which kernels read rows of host memory while they write as many; of copies where not given",
        ),
        "host_link_cache_bytes_per_second": ProfileField(
            _RATE,
            "rate at which a cache fetches rows of host memory while it returns as many; of copies where not given",
        ),
        "host_link_message_seconds": ProfileField(
            _SECONDS, "start of a copy between host memory and the accelerator, in either direction"
        ),
        "host_link_peak_bytes_per_second": ProfileField(_RATE, "host link rate of the data sheet, one direction"),
        "scm_bytes": ProfileField(_BYTES, "byte-addressable storage-class memory, one rank's share"),
        "scm_bytes_per_second": ProfileField(
            _RATE, "rate at which rows are read from storage-class memory, one rank's share"
        ),
        "scm_write_bytes_per_second": ProfileField(
            _RATE, "rate at which rows are written to storage-class memory, one rank's share"
        ),
        "scm_block_bytes": ProfileField(
            _BYTES, "bytes that storage-class memory moves at least, wherever a row is; a cache line where not given"
        ),
        "scm_latency_seconds": ProfileField(
            _SECONDS, "one read of storage-class memory while it is idle; a fact that no price contains"
        ),
        "ssd_bytes": ProfileField(_BYTES, "block storage, one rank's share"),
        "ssd_bytes_per_second": ProfileField(_RATE, "read rate of block storage, one rank's share"),
        "ssd_write_bytes_per_second": ProfileField(_RATE, "write rate of block storage, one rank's share"),
        "ssd_reads_per_second": ProfileField(
            _OPERATIONS, "random reads of one block that block storage serves, one rank's share"
        ),
        "ssd_block_bytes": ProfileField(_BYTES, "bytes that block storage reads at least, wherever a row is"),
        "intra_host_bytes_per_second": ProfileField(
            _RATE,
            "bus bandwidth of a large all-to-all inside one host, or pod; replaces the profile's laws in a domain",
        ),
        "intra_host_latency_seconds": ProfileField(
            _SECONDS, "start of a collective inside one host, where no law has one"
        ),
        "intra_host_peak_bytes_per_second": ProfileField(_RATE, "link rate inside a host, data sheet, one direction"),
        "intra_host_usable_bytes_per_second": ProfileField(_RATE, "link rate inside a host that protocols leave over"),
        "intra_host_two_way_bytes_per_second": ProfileField(_RATE, "link rate inside a pod, both directions together"),
        "intra_host_point_to_point_bytes_per_second": ProfileField(_RATE, "copy between two ranks of one host"),
        "intra_host_point_to_point_latency_seconds": ProfileField(
            _SECONDS, "start of a copy between two ranks of one host"
        ),
        "inter_host_bytes_per_second": ProfileField(
            _RATE,
            "rate at which one rank's data leaves its host in a large all-to-all; replaces the laws over hosts",
        ),
        "inter_host_latency_seconds": ProfileField(
            _SECONDS, "start of a collective over several hosts, where no law has one"
        ),
        "inter_host_peak_bytes_per_second": ProfileField(_RATE, "network card rate of the data sheet, one direction"),
        "inter_host_point_to_point_bytes_per_second": ProfileField(_RATE, "stream between two ranks of two hosts"),
        "inter_host_all_reduce_bytes_per_second": ProfileField(
            _RATE, "buffer size over time of a large all-reduce over many hosts"
        ),
        "network_latency_seconds": ProfileField(_SECONDS, "one message across the idle network"),
    }
)
