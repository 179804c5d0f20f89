"""What TorchRec's planner prints is read as a plan, or refused with the line of the log."""

import gzip
import json
from typing import Any

import pytest

from api.services.plans.printed_memory import compared_memory
from api.services.plans.reports import evaluation_of
from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_evaluation, parse_plan, parse_spec
from api.specs.plans.document import GivenPlan
from tests.support.paths import SHARED
from tests.support.planning.print_outs import Printed, print_out
from tests.support.service.specs import raw

CLUSTER = {"profile": "dgx-h100-80g", "num_hosts": 2, "ranks_per_host": 2}
HBM = ["1.0"] * 4
TABLES = {
    "copied": Printed(path="m.ebc.copied", sharding="DP", ranks="0-3", rows=10, columns="256", kernel="dense"),
    "whole": Printed(path="m.ebc.whole", sharding="TW", ranks="2", rows=7, columns="256"),
    "pieces": Printed(path="m.ebc.pieces", sharding="CW", ranks="1,1,3", rows=9, columns="384 (128)"),
    "rows": Printed(path="m.ebc.rows", sharding="RW", ranks="0-3", rows=10, columns="256"),
    "host": Printed(path="m.ebc.host", sharding="TWRW", ranks="2-3", rows=11, columns="256"),
    "beside": Printed(path="m.ebc.beside", sharding="TWCW", ranks="0-1", rows=11, columns="256 (128)"),
    "grid": Printed(path="m.ebc.grid", sharding="GS", ranks="0,1,2,2,3,3", rows=5, columns="384 (128)"),
}


def spec(*printed: Printed, **changes: object) -> dict[str, Any]:
    """A spec of the printed tables; ``name=module`` in changes gives a table of that name a module."""
    tables = [
        {"name": one.path.rpartition(".")[2], "module_path": one.path.rpartition(".")[0], "num_embeddings": one.rows,
         "embedding_dim": int(one.columns.split()[0]), "pooling_factor": 2.0}
        for one in printed
    ]  # fmt: skip
    model = {"batch_size_per_rank": 64, "tables": tables, "pipeline": "none"}
    return {"name": "printed", "model": model, "hardware": CLUSTER, **changes}


def read(text: str, document: dict[str, Any]) -> GivenPlan:
    return parse_plan(text.encode(), parse_spec(raw(document)).problem)


def refused(text: str, document: dict[str, Any] | None = None) -> list[str]:
    with pytest.raises(RejectedDocument) as error:
        read(text, document or spec(*TABLES.values()))
    return [issue.message for issue in error.value.issues]


@pytest.mark.parametrize("has_ssd", [True, False])
@pytest.mark.parametrize("batch_sizes", [True, False])
def test_shards_of_every_scheme_follow_from_their_ranks(has_ssd: bool, batch_sizes: bool) -> None:
    text = print_out([*TABLES.values()], HBM, has_ssd=has_ssd, batch_sizes=batch_sizes)
    given = read(text, spec(*TABLES.values()))
    shards = {
        table.name: [(s.rank, s.row_offset, s.num_rows, s.column_offset, s.num_columns) for s in table.shards]
        for table in given.placement.tables
    }
    assert shards == {
        "copied": [(rank, 0, 10, 0, 256) for rank in range(4)],
        "whole": [(2, 0, 7, 0, 256)],
        "pieces": [(1, 0, 9, 0, 128), (1, 0, 9, 128, 128), (3, 0, 9, 256, 128)],
        "rows": [(0, 0, 3, 0, 256), (1, 3, 3, 0, 256), (2, 6, 3, 0, 256), (3, 9, 1, 0, 256)],
        "host": [(2, 0, 6, 0, 256), (3, 6, 5, 0, 256)],
        "beside": [(0, 0, 11, 0, 128), (1, 0, 11, 128, 128)],
        "grid": [(0, 0, 3, 0, 128), (1, 3, 2, 0, 128), (2, 0, 3, 128, 128), (3, 3, 2, 128, 128), (2, 0, 3, 256, 128),
                 (3, 3, 2, 256, 128)],
    }  # fmt: skip
    assert {table.module_path for table in given.placement.tables} == {"m.ebc"}
    assert (given.placement.world_size, given.placement.ranks_per_host) == (4, 2)
    (warning,) = given.warnings
    assert (warning.code, warning.severity) == ("print-out-inferred", "warning")
    assert given.printed_memory is not None
    assert given.printed_memory.counts_empty_bags is (None if has_ssd else True)


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "[rank0]:",
        "0: ",
        "2026-11-25 10:00:00,123 INFO ",
        "INFO:torchrec.distributed.planner.stats:",
        "[1,0]<stderr>:",
    ],
)
def test_what_a_log_puts_around_it_is_passed_over(prefix: str) -> None:
    whole = print_out([TABLES["whole"], TABLES["rows"]], HBM)
    log = "loading data\n# 3 warnings\n" + "".join(prefix + line for line in whole.splitlines(True))
    log = log.replace(f"{prefix}# Parameter", f"{prefix}\nloss 0.7\n{prefix}# Parameter") + "step 1\n#\n# done: 3 | 4\n"
    assert len(read(log, spec(TABLES["whole"], TABLES["rows"])).placement.tables) == 2


def test_ranks_that_print_the_same_are_one_and_two_plans_are_refused() -> None:
    one, document = print_out([TABLES["whole"]], HBM), spec(TABLES["whole"])
    both = "".join(f"[rank{rank}]:{line}" for line in one.splitlines(True) for rank in (0, 1))
    assert len(read(both, document).placement.tables) == 1
    assert len(read(one + one, document).placement.tables) == 1
    (message,) = refused(one + one.replace("    2   ", "    1   "), document)
    assert message == f"the log has 2 print-outs of different plans, at lines 2, {2 + len(one.splitlines())}"


def test_a_cache_has_the_load_factor_that_is_printed() -> None:
    cached = Printed(
        path="m.t", sharding="TW", ranks="0", rows=9, columns="64", kernel="fused_uvm_caching", load_factor="0.25"
    )
    table = read(print_out([cached], HBM), spec(cached)).placement.tables[0]
    assert (table.cache_load_factor, table.shards.tier.tolist()) == (0.25, [1])


def test_a_spec_without_modules_is_for_any_module() -> None:
    document = spec(TABLES["whole"])
    document["model"]["tables"][0].pop("module_path")
    assert read(print_out([TABLES["whole"]], HBM), document).placement.tables[0].module_path == ""


def test_a_name_that_stands_twice_is_distinguished_by_its_size() -> None:
    twice = [TABLES["whole"], Printed(path="m.ebc.whole", sharding="TW", ranks="0", rows=99, columns="64")]
    document = spec(*twice)
    document["model"]["tables"][1]["name"] = "whole_b"
    for order in (twice, twice[::-1]):
        given = read(print_out(order, HBM), document)
        assert {table.name: table.shards.rank.tolist() for table in given.placement.tables} == {
            "whole": [2],
            "whole_b": [0],
        }
        assert [warning.code for warning in given.warnings] == ["print-out-inferred", "table-name-inferred"]
    document["model"]["tables"].append({**document["model"]["tables"][1], "name": "whole_c"})
    (message,) = refused(print_out(twice, HBM), document)
    assert "m.ebc.whole has 99 rows of 64 columns, and the spec's table 7 of 256" in message


def changed(name: str, **changes: object) -> str:
    return print_out([Printed(**{**vars(TABLES[name]), **changes})], HBM)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--- Planner Statistics ---", 'no line is "--- Planner Statistics ---"'),
        ("# --- Planner Statistics ---\n#\n", "the print-out lacks the table of ranks"),
        (print_out([TABLES["whole"]], HBM).partition("# Parameter Info")[0], "the print-out lacks Parameter Info"),
        (changed("whole", ranks="None"), 'expected ranks such as 3, 0-7 or 1,1,7, not "None"'),
        (changed("whole", ranks="7"), "rank 7 is not one of 4"),
        (changed("whole", ranks="1,2"), "table_wise of 1 column pieces and 1 row blocks has 1 shards, and 2 ranks are"),
        (changed("rows", ranks="0-1"), "row_wise of 1 column pieces and 4 row blocks has 4 shards, and 2 ranks are"),
        (changed("grid", ranks="0,1,1,2,2,3"), "grid_shard has whole hosts, or pods, of 2 ranks, and of number 0"),
        (changed("pieces", columns="384 (100)"), "384 columns are no multiple of pieces of 100"),
        (changed("whole", kernel="quant"), 'the kernel "quant" is not among'),
        (changed("whole", sharding="XX"), 'no sharding type is abbreviated as "XX"'),
        (changed("whole", kernel="fused_uvm_caching"), "has a cache, and no load factor is printed"),
        (changed("whole", rows=8), "m.ebc.whole has 8 rows of 256 columns, and the spec's table 7 of 256"),
        (changed("whole", path="m.other.whole"), "the spec has no table m.other.whole"),
        (print_out([TABLES["whole"]], ["1.0", "x"]), "expected rank 1 with its HBM"),
        (print_out([TABLES["whole"]], HBM).replace("  pooled", ""), "cells, and Parameter Info has 11 columns"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_line(text: str, message: str) -> None:
    messages = refused(text)
    assert len(messages) == 1
    assert message in messages[0]


def test_the_memory_of_ranks_is_compared_with_the_print_out() -> None:
    """Whole: 9,000,000 x 64 x 4 bytes of weights and 4 ranks' ids and rows of 64 samples, 2.1457 GiB in all."""
    one = Printed(path="m.t", sharding="TW", ranks="2", rows=9_000_000, columns="64")
    document = spec(one, cost_model="torchrec", objective="max_rank_time")
    document["model"]["tables"][0]["optimizer"] = "sgd"
    for hbm, dense, agrees in (
        (["1.0", "1.0", "3.146", "1.0"], "1.0", True),
        (["1.0", "1.0", "3.201", "1.0"], "1.0", False),
    ):
        text = print_out([one], hbm, dense=dense)
        request = parse_spec(raw(document))
        given = read(text, document)
        comparison = compared_memory(request.problem, given)
        assert comparison is not None
        assert comparison.agrees is agrees
        assert (comparison.rank, comparison.num_ranks) == (2, 4)
        codes = {warning.code for warning in evaluation_of(request, given).warnings}
        assert ("print-out-memory" in codes) is not agrees
    assert compared_memory(request.problem, read(print_out([one], HBM, dense=None), document)) is None


def test_an_older_release_counts_an_output_row_for_empty_bags() -> None:
    """A tenth of an id per sample: 256 rows of 2^20 samples in the older release, a tenth of that in the newer one."""
    one = Printed(path="m.t", sharding="TW", ranks="0", rows=1, columns="256")
    document = spec(one)
    document["model"]["batch_size_per_rank"] = 2**20
    document["model"]["tables"][0] |= {"pooling_factor": 0.1, "optimizer": "sgd"}
    ids, outputs = 2**22 * 0.1 * 8, 2**22 * 256 * 4
    problem = parse_spec(raw(document)).problem
    for used, has_ssd, counts in ((outputs, False, True), (outputs, True, True), (outputs * 0.1, True, False)):
        text = print_out([one], [f"{(ids + used) / 2**30:.3f}", "0.0", "0.0", "0.0"], has_ssd=has_ssd)
        comparison = compared_memory(problem, read(text, document))
        assert comparison is not None
        assert (comparison.agrees, comparison.counts_empty_bags) == (True, counts)


def test_the_service_takes_a_print_out_as_a_text() -> None:
    document, text = spec(TABLES["whole"], TABLES["rows"]), print_out([TABLES["whole"], TABLES["rows"]], HBM)
    request, given = parse_evaluation(raw({"spec": document, "plan": text}))
    assert evaluation_of(request, given).valid
    previous = parse_spec(raw({**document, "previous_plan": {"plan": text}}))
    assert [table.name for table in previous.previous.placement.tables] == ["whole", "rows"]
    with pytest.raises(RejectedDocument) as error:
        parse_evaluation(raw({"spec": document, "plan": "no plan"}))
    assert error.value.issues[0].pointer == "/plan"
    with pytest.raises(RejectedDocument) as error:
        parse_spec(raw({**document, "previous_plan": {"plan": "no plan"}}))
    assert error.value.issues[0].pointer == "/previous_plan/plan"


def test_a_public_log_of_1935_tables_has_the_memory_of_all_96_ranks() -> None:
    folder = SHARED / "cases/models/torchrec-1935-tables-96-ranks"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: public logs are not part of the repository")
    request = parse_spec(gzip.decompress((folder / "spec_tr_none.json.gz").read_bytes()))
    given = parse_plan(gzip.decompress((folder / "planner_statistics.txt.gz").read_bytes()), request.problem)
    comparison = compared_memory(request.problem, given)
    assert comparison is not None
    assert comparison.num_ranks == 96
    assert comparison.agrees, comparison.text()
    assert comparison.counts_empty_bags
    theirs = json.loads(gzip.decompress((folder / "their_plan.json.gz").read_bytes()))
    ranks = {table["name"]: sorted(shard["rank"] for shard in table["shards"]) for table in theirs["tables"]}
    assert {table.name: sorted(table.shards.rank.tolist()) for table in given.placement.tables} == ranks
