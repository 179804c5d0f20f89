"""Public launches are predicted by the product's model, known by their columns, and never crash a report."""

import gzip
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks.prices.reality.kernels import rows
from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.tbe.launch import Table, kernel_seconds, launch_seconds, profile_of
from tests.support.paths import ROOT, SHARED

PUBLIC = SHARED / "measured_gpu"
LAUNCHES = (
    "backend,gpu,tables,rows_per_table,dim,batch_per_table,lookups,unique_lookups,pooling,weights_dtype,output_dtype,"
    "optimizer,kernel_location,cache_footprint_ratio,cache_load_factor,alpha,fwd_ms,bwd_ms"
)
H100 = "NVIDIA H100 80GB HBM3"
FIGURES = (
    "gpu,kernel,direction,tables,rows,dim,batch,pooling_L,bags_total,lookups_total,alpha,optimizer,time_us,note,group"
)
TRACES = (
    "trace,gpu,rank,step,class,kernel,collective,dtype,payload_bytes,dur_us,tbe_features,tbe_indices,tbe_offsets,"
    "tbe_weight_elems"
)


def predictions(folder: Path) -> list[PredictedRow]:
    return [row for row in rows(folder) if isinstance(row, PredictedRow)]


def left_out(folder: Path) -> Counter[str]:
    return Counter(row.reason for row in rows(folder) if isinstance(row, LeftOutRow))


def test_both_directions_of_a_launch_whatever_the_file_is_called(tmp_path: Path) -> None:
    line = f"fbgemm_tbe,{H100},10,1000000,64,100000,1000000,300000,none,fp32,fp32,adam,DEVICE,,,1.05,0.3,0.9"
    (tmp_path / "anything.csv.gz").write_bytes(gzip.compress(f"{LAUNCHES}\n{line}\n".encode()))
    found = predictions(tmp_path)
    assert [row.groups[0] for row in found] == ["tbe forward", "tbe backward"]
    table = Table(rows=1_000_000, columns=64, lookups=1e5, outputs=1e5, distinct=3e4, optimizer="adam", is_pooled=False)
    assert [row.predicted_seconds for row in found] == list(launch_seconds("dgx-h100-80g", [table] * 10))
    assert [row.measured_seconds for row in found] == pytest.approx([0.3e-3, 0.9e-3])
    assert all((row.file, row.line) == ("anything.csv.gz", 2) for row in found)
    assert "tbe forward: a million lookups and more" in found[0].groups


def test_rows_in_host_memory_have_their_own_group(tmp_path: Path) -> None:
    cells = f"fbgemm_tbe,{H100},1,1000000,128,100000,100000,,none,fp32,fp32,sgd,{{}},{{}},{{}},1.05,1,1"
    places = (("UVM", "", ""), ("UVM_CACHING(LRU)", "0.8", ""), ("UVM_CACHING(LRU)", "", "0.1"), ("DEVICE", "", ""))
    text = "\n".join([LAUNCHES, *(cells.format(*place) for place in places)])
    (tmp_path / "a.csv").write_text(text)
    found = [row for row in predictions(tmp_path) if row.groups[0] == "tbe forward"]
    assert ["tbe host memory" in row.groups for row in found] == [True, True, True, False]
    assert len({row.predicted_seconds for row in found}) == 4


def test_rows_without_a_law_are_counted_with_a_reason(tmp_path: Path) -> None:
    """Hash tables, GPUs without a profile, and cells that are no numbers."""
    cells = "{},{},{},1000000,128,100000,100000,,none,fp32,fp32,sgd,DEVICE,,,1.05,1,1"
    lines = (("dynamicemb", H100, "1"), ("fbgemm_tbe", "Some GPU", "1"), ("fbgemm_tbe", H100, "many"))
    (tmp_path / "a.csv").write_text("\n".join([LAUNCHES, *(cells.format(*line) for line in lines)]))
    (tmp_path / "b.csv").write_text("unrelated,columns\n1,2\n")
    (tmp_path / "c.csv").write_text("")
    assert not predictions(tmp_path)
    assert left_out(tmp_path) == {
        "the hash tables of dynamicemb, not FBGEMM's kernels": 2,
        "no profile of the GPU": 2,
        "not readable: no number in tables": 1,
    }


def test_the_two_kernels_of_a_backward_pass_are_added_up(tmp_path: Path) -> None:
    cells = (
        "MI350 (gfx950),DEVICE,{},10,10000000,64,4096,55,4096,2252800,1.15,exact_row_wise_adagrad,{},PROCESS_BLOCK,g"
    )
    both = [cells.format("bwd CTA-per-row", 200), cells.format("bwd warp-per-row", 500)]
    (tmp_path / "a.csv").write_text("\n".join([FIGURES, *both]))
    (found,) = predictions(tmp_path)
    assert found.measured_seconds == pytest.approx(700e-6)
    assert "tbe backward: 64 columns" in found.groups
    (tmp_path / "a.csv").write_text("\n".join([FIGURES, both[0]]))
    assert not predictions(tmp_path)
    assert left_out(tmp_path) == {"one kernel of a backward pass without the other": 1}


def test_a_step_of_a_trace(tmp_path: Path) -> None:
    """10 tables of 1,000 rows; an all-to-all of 64,000,000 B of fp32 for 1,000,000 bags: 16 columns."""
    start = "t,NVIDIA A100-SXM4-80GB,0,7"
    lines = [
        f"{start},nccl,all,all_to_all,float,64000000,900,,,,",
        f"{start},tbe_forward,forward_unweighted,,,,100,10,20000000,1000001,160000",
        f"{start},tbe_backward,backward,,,,300,,,,",
        f"{start},sort,sort,,,,50,,,,",
        f"{start},index_prep,bounds_check_indices,,,,70,,,,",
    ]
    (tmp_path / "a.csv").write_text("\n".join([TRACES, *lines]))
    forward, backward = predictions(tmp_path)
    table = Table(rows=1_000, columns=16, lookups=2e6, outputs=1e5, distinct=math.nan)
    expected = kernel_seconds("dgx-a100-80g", [table] * 10)
    assert (forward.predicted_seconds, backward.predicted_seconds) == expected
    assert backward.measured_seconds == pytest.approx(350e-6)
    assert sum(left_out(tmp_path).values()) == 3


MEASURED = ROOT / "benchmarks" / "measured"


@pytest.mark.parametrize("gpu", ["h100", "h200"])
def test_laws_hold_on_our_own_launches(gpu: str) -> None:
    """Launches of equal tables, and random ones with starts: the figures of decision 0067."""
    found = [row for row in predictions(MEASURED / gpu) if any(name.endswith(": DEVICE") for name in row.groups)]
    assert len(found) > 1_600
    for direction in ("forward", "backward"):
        errors = {
            file: [
                abs(row.relative_error)
                for row in found
                if row.file == file and f"tbe {direction}: a million lookups and more" in row.groups
            ]
            for file in ("launches.csv", "lookups.csv.gz")
        }
        assert len(errors["launches.csv"]) == 48
        assert np.mean(errors["launches.csv"]) < 0.06
        assert np.mean(errors["lookups.csv.gz"]) < 0.25


def test_further_tables_of_a_measured_launch_are_part_of_it(tmp_path: Path) -> None:
    columns = "kind,launch,device,implementation,shard_rows,shard_columns,element_bytes,output_element_bytes"
    head = f"{columns},lookups,outputs,distinct_rows,forward_seconds,backward_seconds"
    timed = "4,4,2000000,65536,500000,0.001,0.002"
    rows = [
        f"lookup,0,{H100},fbgemm_tbe,1000000,128,{timed}",
        f"lookup,0,{H100},fbgemm_tbe,1000000,16,{timed}",
        f"lookup,1,{H100},embedding_bag,1000000,16,{timed}",
        f"lookup,2,Some GPU,fbgemm_tbe,1000000,16,{timed}",
        f"copy,3,{H100},torch_copy,,,,,,,,,",
    ]
    (tmp_path / "a.csv").write_text("\n".join([head, *rows]))
    wide, narrow = (
        Table(rows=1_000_000, columns=columns, lookups=2e6, outputs=65_536, distinct=5e5) for columns in (128, 16)
    )
    forward, backward = predictions(tmp_path)
    assert (forward.predicted_seconds, backward.predicted_seconds) == launch_seconds("dgx-h100-80g", [wide, narrow])
    assert (forward.measured_seconds, backward.measured_seconds) == (0.001, 0.002)
    assert sum(left_out(tmp_path).values()) == 4


def test_gpus_are_known_by_their_names() -> None:
    assert profile_of("NVIDIA A100-PG509-200") == "zionex-a100-40g"
    assert profile_of("Tesla V100-SXM2-32GB") == "zionex-prototype-v100-32g"
    assert profile_of("GPU") is None


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="needs the public measurements of ../shared/measured_gpu")
def test_laws_hold_on_the_public_launches() -> None:
    """Targets of launches with a million lookups or more; single widths are known less well."""
    errors = defaultdict(list)
    for row in predictions(PUBLIC):
        for group in row.groups:
            errors[group].append(abs(row.relative_error))
    many = "a million lookups and more"
    assert np.mean(errors[f"tbe forward: {many}"]) < 0.05
    assert np.mean(errors[f"tbe backward: {many}"]) < 0.03
    for location in ("DEVICE", "UVM", "UVM_CACHING"):
        assert np.mean(errors[f"tbe backward: {location}, {many}"]) < 0.04
    assert np.mean(errors[f"tbe forward: UVM, {many}"]) < 0.03
    of_widths = [np.mean(errors[f"tbe forward: {columns} columns"]) for columns in (4, 16, 32, 512, 1024)]
    assert np.mean(of_widths) < 0.10
    assert max(of_widths) < 0.15


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("tables", "0", "tables is no whole number from 1 on"),
        ("tables", "1e18", "tables is not between 0 and 100000"),
        ("rows_per_table", "inf", "no number in rows_per_table"),
        ("rows_per_table", "9" * 21, "rows_per_table is not between 0 and 1.09951e+12"),
        ("dim", "0.5", "dim is no whole number from 1 on"),
        ("lookups", "-1", "lookups is not between 0 and 1e+18"),
        ("bwd_ms", "0", "no time in bwd_ms"),
    ],
)
def test_launches_with_broken_cells_are_left_out_with_the_column(
    tmp_path: Path, column: str, cell: str, reason: str
) -> None:
    row = f"fbgemm_tbe,{H100},10,1000000,64,100000,1000000,300000,none,fp32,fp32,adam,DEVICE,,,1.05,0.3,0.9"
    cells = dict(zip(LAUNCHES.split(","), row.split(","), strict=True)) | {column: cell}
    (tmp_path / "a.csv").write_text(f"{LAUNCHES}\n{','.join(cells.values())}\n")
    assert left_out(tmp_path) == {f"not readable: {reason}": 1}


@pytest.mark.parametrize(
    ("header", "column"), [(FIGURES, "gpu"), (FIGURES, "tables"), (FIGURES, "alpha"), (TRACES, "kernel")]
)
def test_a_column_that_lacks_leaves_its_rows_out(tmp_path: Path, header: str, column: str) -> None:
    columns = [name for name in header.split(",") if name != column]
    cells = {"gpu": H100, "kernel": "DEVICE", "direction": "fwd", "optimizer": "sgd", "alpha": "1.0", "class": "sort"}
    (tmp_path / "a.csv").write_text(f"{','.join(columns)}\n{','.join(cells.get(name, '8') for name in columns)}\n")
    assert sum(left_out(tmp_path).values()) == 1
    assert predictions(tmp_path) == []
