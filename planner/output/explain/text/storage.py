"""How the rows of a table are stored, for people: only what differs from fp32 rows in the accelerator's memory."""

from collections.abc import Sequence

from planner.domain.formats.compact_form import num_shards
from planner.output.documents.compact_plan import CompactTableDocument
from planner.output.explain.text.layout import INDENT

_PLAIN_KERNEL, _PLAIN_TYPE = "fused", "fp32"


def storage_of(table: CompactTableDocument) -> str:
    """Return kernel, cached or hot share, type of weights and mode of slots: ``"fused_uvm_caching, 0.2 cached, fp16"``.

    Empty for fp32 weights of numbered rows under the kernel fused.
    """
    share, data_type = table.get("cache_load_factor"), table.get("data_type")
    parts = [
        *([table["compute_kernel"]] if table["compute_kernel"] != _PLAIN_KERNEL else []),
        *([f"{share:.3g} cached"] if share else []),
        *_hot_rows(table),
        *([data_type] if data_type and data_type != _PLAIN_TYPE else []),
        *([f"{mode} slots"] if (mode := table.get("hash_table_mode")) else []),
    ]
    return ", ".join(parts)


def _hot_rows(table: CompactTableDocument) -> list[str]:
    """Return which share of the rows lies in a faster tier, of a table whose hot rows are apart from the others."""
    first = {group["tier"] for group in table["shards"] if group["row_offset"] == 0}
    others = {group["tier"] for group in table["shards"]}
    if len(others) == 1 or len(first) != 1:
        return []
    (tier,) = first
    cells = [(group["tier"], group["num_rows"] * group["num_columns"] * num_shards(group)) for group in table["shards"]]
    hot = sum(number for place, number in cells if place == tier)
    return [f"hottest {hot / sum(number for _, number in cells):.3g} in {tier}"]


def with_storage(lines: Sequence[str], storages: Sequence[Sequence[str]]) -> list[str]:
    """Put the storage of each table under its line; the first line is the heading."""
    result = [lines[0]]
    for line, of_table in zip(lines[1:], storages, strict=True):
        result += [line, *(f"{INDENT * 2}{storage}" for storage in of_table if storage)]
    return result
