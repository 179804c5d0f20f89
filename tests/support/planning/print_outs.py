"""Print-outs of a planner's statistics as TorchRec logs them, with the columns of an earlier or a later release."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Printed:
    """One line of ``Parameter Info``."""

    path: str
    sharding: str
    ranks: str
    rows: int
    columns: str
    kernel: str = "fused"
    load_factor: str = "None"


def print_out(
    tables: Sequence[Printed],
    hbm: Sequence[str],
    *,
    dense: str | None = "0.0",
    has_ssd: bool = True,
    batch_sizes: bool = False,
) -> str:
    """Return a print-out; ``hbm`` is that of each rank, ``dense`` of the dense part in each of them."""
    ranks = [["Rank", "HBM (GB)", "DDR (GB)", "Perf (ms)", "Input (MB)", "Output (MB)", "Shards"]]
    ranks += [[str(rank), f"{used} (7%)", "0.0 (0%)", "1.5 (1,0.2,0.3,0,0)", "1.0", "2.0", "TW: 1"]
              for rank, used in enumerate(hbm)]  # fmt: skip
    head = ["FQN", "Sharding", "Compute Kernel", "Perf (ms)", "Storage (HBM, DDR, SSD)" if has_ssd else
            "Storage (HBM, DDR)", "Cache Load Factor", "Sum Pooling Factor", "Output", "Emb Dim (CW Dim)", "Hash Size",
            "Ranks", *(["Batch Sizes"] if batch_sizes else [])]  # fmt: skip
    storage = "(1.0 GB, 0.0 GB, 0.0 GB)" if has_ssd else "(1.0 GB, 0.0 GB)"
    lines = [[one.path, one.sharding, one.kernel, "1.5 (1,0.2,0.3,0,0)", storage, one.load_factor, "1.0", "pooled",
              one.columns, str(one.rows), one.ranks, *(["256 * 2, 8"] if batch_sizes else [])]
             for one in tables]  # fmt: skip
    parts = ["#" * 60, "#   --- Planner Statistics ---   #", "#   --- Evaluated 3 proposal(s) ---   #", "#  ----  #"]
    parts += [*_lines(ranks), "#   #", "# HBM: estimated peak memory usage   #", "#   #", "# Parameter Info:   #"]
    parts += [*_lines([head, *lines]), "#   #", "# Batch Size: 64   #", "#   #"]
    if dense is not None:
        parts += ["# Dense Storage (per rank):   #", f"#    HBM: {dense} GB, DDR: 0.0 GB   #", "#   #"]
        parts += ["# KJT Storage (per rank):   #", "#    HBM: 0.0 GB, DDR: 0.0 GB   #"]
    return "\n".join([*parts, "#" * 60, ""])


def _lines(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) + 3 for column in range(len(rows[0]))]
    rule = ["-" * (width - 3) for width in widths]
    return [
        "# " + "".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + "   #"
        for row in (rows[0], rule, *rows[1:])
    ]
