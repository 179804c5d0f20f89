"""Pinned tables: shards of a plan become pieces, and what no legal cut gives is refused where it stands."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.problem.table import PinnedPiece, PinnedTable
from planner.errors import InvalidProblem
from planner.options.runtimes.torchrec.rules import SCHEMES
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import Piece, geometry
from planner.solver.problem import Scope
from tests.support.service.specs import raw, tiny
from tests.support.thorough import thorough

Json = dict[str, Any]
ROWS, COLUMNS = 1000, 128  # of table a


def shard(
    rank: int, rows: tuple[int, int] = (0, ROWS), columns: tuple[int, int] = (0, COLUMNS), **more: object
) -> Json:
    """A shard of half-open ranges of rows and columns."""
    return {
        "rank": rank,
        "row_offset": rows[0],
        "num_rows": rows[1] - rows[0],
        "column_offset": columns[0],
        "num_columns": columns[1] - columns[0],
        **more,
    }


def pin(scheme: str, *shards: Json, kernel: str = "fused") -> Json:
    return {"sharding_type": scheme, "compute_kernel": kernel, "shards": list(shards)}


#: 1000 rows: blocks of 250 over the four ranks, of 500 over the two of a host.
TABLE_WISE = pin("table_wise", shard(2))
COLUMN_WISE = pin("column_wise", shard(3, columns=(0, 32)), shard(0, columns=(32, 128)))
ROW_WISE = pin("row_wise", *(shard(r, (250 * r, 250 * r + 250)) for r in range(4)))
TABLE_ROW_WISE = pin("table_row_wise", shard(2, (0, 500)), shard(3, (500, 1000)))
TABLE_COLUMN_WISE = pin("table_column_wise", shard(3, columns=(0, 64)), shard(2, columns=(64, 128)))
GRID_SHARD = pin(
    "grid_shard",
    *(shard(2 + r, (500 * r, 500 * r + 500), (0, 96)) for r in range(2)),
    *(shard(r, (500 * r, 500 * r + 500), (96, 128)) for r in range(2)),
)
DATA_PARALLEL = pin("data_parallel", *(shard(r) for r in range(4)), kernel="dense")


def spec(pinned: Json, *, b: Json | None = None, **changes: object) -> Json:
    """Tables a and b on two hosts of two ranks; ``pinned`` places a, and ``b`` is the other's placement."""
    table = {"num_embeddings": ROWS, "embedding_dim": COLUMNS, "pooling_factor": 2.0}
    tables: list[Json] = [{"name": name, **table} for name in "ab"]
    tables[0]["constraints"] = {"pinned": pinned}
    if b is not None:
        tables[1]["constraints"] = {"pinned": b}
    return tiny(**{"model__tables": tables, "hardware__num_hosts": 2, **changes})


def request_of(pinned: Json, **changes: object) -> SolveRequest:
    return parse_spec(raw(spec(pinned, **changes)))


def pinned_of(request: SolveRequest, table: int = 0) -> PinnedTable:
    pinned = request.problem.tables[table].constraints.pinned
    assert pinned is not None
    return pinned


def refused(pinned: Json, **changes: object) -> tuple[str, str]:
    """Pointer, and message with hint, of the one issue of a spec."""
    with pytest.raises(InvalidProblem) as caught:
        request_of(pinned, **changes)
    (issue,) = caught.value.issues
    assert issue.hint
    return issue.pointer, f"{issue.message}; {issue.hint}"


@pytest.mark.parametrize(
    ("pinned", "pieces"),
    [
        (TABLE_WISE, [(0, 128, 2)]),
        (pin("table_wise", shard(1), kernel="dense"), [(0, 128, 1)]),
        (COLUMN_WISE, [(0, 32, 3), (32, 96, 0)]),
        (ROW_WISE, [(0, 128, 0)]),
        (TABLE_ROW_WISE, [(0, 128, 1)]),
        (TABLE_COLUMN_WISE, [(0, 64, 3), (64, 64, 2)]),
        (GRID_SHARD, [(0, 96, 1), (96, 32, 0)]),
        (DATA_PARALLEL, [(0, 128, 0)]),
    ],
    ids=lambda part: part["sharding_type"] if isinstance(part, dict) else "",
)
def test_shards_become_pieces(pinned: Json, pieces: list[tuple[int, int, int]]) -> None:
    assert pinned_of(request_of(pinned)) == PinnedTable(
        sharding_type=Scheme.from_label(pinned["sharding_type"]),
        compute_kernel=Kernel.from_label(pinned["compute_kernel"]),
        pieces=tuple(PinnedPiece(column_offset=o, num_columns=n, site=site) for o, n, site in pieces),
    )


@thorough
@given(st.data())
def test_every_placement_that_a_scheme_makes_can_be_pinned(data: st.DataObject) -> None:
    request = request_of(TABLE_WISE)
    table, cluster = request.problem.tables[0], request.problem.cluster
    scheme = data.draw(st.sampled_from(SCHEMES))
    cut = geometry(scheme, table, cluster)
    assert cut is not None
    count = data.draw(st.integers(cut.min_pieces, cut.max_pieces))
    inner = data.draw(st.lists(st.integers(1, 31), min_size=count - 1, max_size=count - 1, unique=True))
    edges = [0, *(4 * cut for cut in sorted(inner)), COLUMNS]
    sites = {Scope.RANK: 2 if cut.same_host else 4, Scope.HOST: 2, Scope.WORLD: 1}[cut.scope]
    pieces = [
        PinnedPiece(column_offset=low, num_columns=high - low, site=data.draw(st.integers(0, sites - 1)))
        for low, high in pairwise(edges)
    ]
    shards = [
        shard(s.rank, (s.row_offset, s.row_offset + s.num_rows), (s.column_offset, s.column_offset + s.num_columns))
        for p in pieces
        for s in expand(
            table,
            Piece(
                scope=cut.scope,
                column_offset=p.column_offset,
                num_columns=p.num_columns,
                replicated=cut.replicated,
            ),
            p.site,
            cluster,
            cluster.device_tier,
        )
    ]
    kernel = "dense" if scheme.is_replicated else "fused"
    again = request_of(pin(scheme.label, *data.draw(st.permutations(shards)), kernel=kernel))
    assert pinned_of(again).pieces == tuple(pieces)


def test_shards_of_a_plan_can_be_pasted_and_mean_the_same() -> None:
    pasted = pin("table_wise", shard(2, tier="hbm", bytes=512_000))
    assert request_of(pasted).spec_digest == request_of(TABLE_WISE).spec_digest
    turned = pin("row_wise", *reversed(ROW_WISE["shards"]))
    assert request_of(turned).spec_digest == request_of(ROW_WISE).spec_digest
    assert request_of(pin("table_wise", shard(1))).spec_digest != request_of(TABLE_WISE).spec_digest


@pytest.mark.parametrize("pinned", [GRID_SHARD, DATA_PARALLEL], ids=lambda pinned: pinned["sharding_type"])
def test_the_normalised_spec_means_the_same(pinned: Json) -> None:
    request = request_of(pinned)
    again = parse_spec(canonical_bytes(request.spec))
    assert (again.spec, again.spec_digest, again.problem) == (request.spec, request.spec_digest, request.problem)


PIN = "/model/tables/0/constraints/pinned"


def blocks(*ends: int) -> list[Json]:
    """row_wise shards that end at these rows."""
    return [shard(r, (low, high)) for r, (low, high) in enumerate(pairwise((0, *ends)))]


@pytest.mark.parametrize(
    ("pinned", "where", "reported"),
    [
        # columns
        (
            pin("column_wise", shard(0, columns=(0, 64)), shard(1, columns=(64, 96))),
            "/shards",
            "end at column 96 of 128; cover the 128 columns",
        ),
        (
            pin("column_wise", shard(0, columns=(0, 64)), shard(1, columns=(72, 128))),
            "/shards/1/column_offset",
            "starts at column 72, and those left of it end at column 64",
        ),
        (
            pin("column_wise", shard(0, columns=(60, 128)), shard(1, columns=(0, 64))),
            "/shards/0/column_offset",
            "starts at column 60, and those left of it end at column 64",
        ),
        (
            pin("column_wise", shard(0, columns=(0, 62)), shard(1, columns=(62, 128))),
            "/shards/0/num_columns",
            "a piece of 62 columns; a multiple of 4 up to 1024 is right",
        ),
        (pin("column_wise", shard(0)), "/shards", "column_wise has 2 to 4 column pieces here, and not 1"),
        (
            pin("column_wise", *(shard(0, columns=(16 * i, 16 * i + 16)) for i in range(8))),
            "/shards",
            "column_wise has 2 to 4 column pieces here, and not 8",
        ),
        (pin("table_wise", shard(0), shard(1)), "/shards", "table_wise has 1 column piece here, and not 2"),
        (
            pin("table_column_wise", shard(1, columns=(0, 64)), shard(2, columns=(64, 128))),
            "/shards/1/rank",
            "keeps a table on one host, and rank 2 is not on host 0",
        ),
        # rows
        (
            pin("row_wise", *blocks(240, 500, 750, 1000)),
            "/shards/0/num_rows",
            "row_wise has num_rows 250 on rank 0 here, and not 240",
        ),
        (pin("row_wise", *blocks(500, 1000)), "/shards", "one shard on every rank: 4 at column 0, and not 2"),
        (pin("row_wise", *([shard(1, (0, 250))] * 4)), "/shards/0/rank", "row_wise has rank 0 on rank 0 here"),
        (
            pin("table_row_wise", shard(1, (0, 500)), shard(2, (500, 1000))),
            "/shards/0/rank",
            "table_row_wise has rank 0 on rank 0 here, and not 1",
        ),
        (
            pin("grid_shard", *GRID_SHARD["shards"][:2], shard(0, (0, 500), (96, 128))),
            "/shards",
            "one shard on every rank of a host: 2 at column 96, and not 1",
        ),
        (
            pin("grid_shard", GRID_SHARD["shards"][0], shard(3, (500, 1000), (0, 92)), *GRID_SHARD["shards"][2:]),
            "/shards/1/num_columns",
            "grid_shard has num_columns 96 on rank 3 here, and not 92",
        ),
        (pin("table_wise", shard(0, (0, 999))), "/shards/0/num_rows", "num_rows 1000 on rank 0 here, and not 999"),
        # ranks, tiers, kernels
        (pin("table_wise", shard(4)), "/shards/0/rank", "the cluster has ranks 0 to 3; use ranks 0 to 3"),
        (pin("table_wise", shard(0, tier="ddr")), "/shards/0/tier", "kernel fused keeps rows in hbm"),
        (pin("row_wise", shard(0), kernel="dense"), "/compute_kernel", "row_wise runs with fused, "),
    ],
)
def test_what_no_legal_cut_gives_is_refused_where_it_stands(pinned: Json, where: str, reported: str) -> None:
    pointer, text = refused(pinned)
    assert pointer == PIN + where
    assert reported in text
    assert text.startswith('table "a": ')


def test_a_scheme_that_does_not_fit_the_table_or_the_runtime() -> None:
    where, reported = refused(ROW_WISE, model__tables__0__num_embeddings=5)  # blocks of 2: the last one is empty
    assert (where, "row_wise does not fit 5 rows on 2 x 2 ranks" in reported) == (PIN + "/sharding_type", True)
    where, reported = refused(GRID_SHARD, model__tables__0__pooling="mean")
    assert (where, "means of partial bags" in reported) == (PIN + "/sharding_type", True)
    alone = pin("column_wise", shard(0, columns=(0, 64)), shard(0, columns=(64, 128)))
    where, reported = refused(alone, hardware__num_hosts=1, hardware__ranks_per_host=1)
    assert (where, "column_wise does not fit" in reported) == (PIN + "/sharding_type", True)


def test_a_pinned_cache_says_its_share_and_no_other_kernel_has_one() -> None:
    where, reported = refused(pin("table_wise", shard(0), kernel="fused_uvm_caching"))
    assert (where, "needs the share of the rows" in reported) == (PIN + "/cache_load_factor", True)
    where, reported = refused({**pin("table_wise", shard(0), kernel="fused_uvm"), "cache_load_factor": 0.5})
    assert (where, "fused_uvm has no cache" in reported) == (PIN + "/cache_load_factor", True)
    where, reported = refused(pin("table_wise", shard(0, tier="hbm"), kernel="fused_uvm"))
    assert (where, "fused_uvm keeps rows in ddr" in reported) == (PIN + "/shards/0/tier", True)


def test_pins_that_no_kernel_of_the_runtime_runs_are_refused() -> None:
    stored = {**pin("table_wise", shard(0), kernel="key_value"), "cache_load_factor": 0.21}
    where, reported = refused(stored)
    assert where == PIN + "/cache_load_factor"
    assert (
        reported
        == 'table "a": the runtime torchrec caches at most 0.2 of the rows of key_value tables; use 0.2 or less'
    )
    assert request_of({**stored, "cache_load_factor": 0.2})
    quantised = {"model__tables__0__data_type": "int8", "model__tables__0__optimizer": "none"}
    where, reported = refused({**stored, "cache_load_factor": 0.2}, **quantised)
    assert where == "/model/tables/0/data_type"
    assert "does not train int8 weights" in reported
    on_host = {"hardware__profile": "cpu-2s-genoa-200g", "hardware__ranks_per_host": 1}
    where, reported = refused(pin("table_wise", shard(0)), model__tables__0__optimizer="adam", **on_host)
    assert where == PIN + "/compute_kernel"
    assert "fused does not train with adam on hosts without accelerators" in reported
    assert request_of(pin("table_wise", shard(0), kernel="dense"), model__tables__0__optimizer="adam", **on_host)


def test_a_pinned_cache_is_preserved_with_its_share() -> None:
    cached = {**pin("table_wise", shard(0, tier="ddr"), kernel="fused_uvm_caching"), "cache_load_factor": 0.5}
    pinned = request_of(cached).problem.tables[0].constraints.pinned
    assert pinned is not None
    assert (pinned.compute_kernel, pinned.cache_load_factor) == (Kernel.FUSED_UVM_CACHING, 0.5)


def test_rows_are_not_pinned_to_memory_that_is_not_there() -> None:
    where, reported = refused(pin("table_wise", shard(0), kernel="fused_uvm"), hardware__overrides={"ddr_bytes": 0})
    assert (where, "of which the cluster has none" in reported) == (PIN + "/compute_kernel", True)


SCM = {"scm_bytes": 1e11, "scm_bytes_per_second": 1e10, "scm_write_bytes_per_second": 3e9}


def test_rows_are_pinned_to_storage_class_memory_where_a_shard_says_so_or_there_is_no_other() -> None:
    def is_in_scm(tier: str | None, *, runtime: str = "generic", **overrides: float) -> bool:
        there = pin("table_wise", shard(0, tier=tier), kernel="fused_uvm")
        return pinned_of(request_of(there, runtime=runtime, hardware__overrides=SCM | overrides)).in_scm

    assert is_in_scm("scm")
    assert not is_in_scm("ddr")
    assert not is_in_scm(None)
    assert is_in_scm(None, ddr_bytes=0)
    halves = (shard(0, columns=(0, 64), tier="scm"), shard(1, columns=(64, 128), tier="ddr"))
    changes = {"runtime": "generic", "hardware__overrides": SCM}
    where, reported = refused(pin("column_wise", *halves, kernel="fused_uvm"), **changes)
    assert (where, "use scm" in reported) == (PIN + "/shards/1/tier", True)
    there = pin("table_wise", shard(0, tier="scm"), kernel="fused_uvm")
    where, reported = refused(there, runtime="torchrec", hardware__overrides=SCM)
    assert (where, "use ddr" in reported) == (PIN + "/shards/0/tier", True)
    where, reported = refused(pin("table_wise", shard(0, tier="scm")), **changes)
    assert (where, "keeps rows in hbm" in reported) == (PIN + "/shards/0/tier", True)


@pytest.mark.parametrize(
    ("constraint", "where", "reported"),
    [
        ({"sharding_types": ["row_wise"]}, "/sharding_type", "sharding_types do not allow column_wise"),
        ({"compute_kernels": ["dense"]}, "/compute_kernel", "compute_kernels do not allow fused"),
        ({"ranks": [0, 1]}, "/shards/0/rank", "ranks do not allow rank 3"),
        ({"hosts": [1]}, "/shards/1/rank", "hosts do not allow rank 0, which is on host 0"),
        ({"min_partition": 48}, "/shards/0/num_columns", "asks for 48 columns, and this piece has 32"),
    ],
)
def test_a_constraint_that_contradicts_the_pin(constraint: Json, where: str, reported: str) -> None:
    pointer, text = refused(COLUMN_WISE, model__tables__0__constraints={"pinned": COLUMN_WISE, **constraint})
    assert pointer == PIN + where
    assert reported in text
    agreeing = {"sharding_types": ["column_wise"], "compute_kernels": ["fused"], "ranks": [0, 3], "min_partition": 32}
    request_of(COLUMN_WISE, model__tables__0__constraints={"pinned": COLUMN_WISE, **agreeing})


@pytest.mark.parametrize(
    ("kind", "a", "b", "reported"),
    [
        ("same_rank", TABLE_WISE, pin("table_wise", shard(1)), "are pinned to different ranks"),
        ("same_rank", COLUMN_WISE, None, 'table "a" is pinned to more than the one rank'),
        ("same_rank", DATA_PARALLEL, None, 'table "a" is pinned to more than the one rank'),
        ("apart", TABLE_WISE, TABLE_ROW_WISE, 'table "b" is pinned to rank 2, like another'),
        ("apart", ROW_WISE, None, 'table "a" is pinned to all ranks'),
    ],
)
def test_groups_that_contradict_pins(kind: str, a: Json, b: Json | None, reported: str) -> None:
    pointer, text = refused(a, b=b, constraints={kind: [["a", "b"]]})
    assert pointer == f"/constraints/{kind}/0"
    assert reported in text


def test_groups_that_agree_with_pins() -> None:
    together = request_of(TABLE_WISE, b=TABLE_WISE, constraints={"same_rank": [["a", "b"]]})
    assert pinned_of(together, 1).pieces[0].site == 2
    request_of(TABLE_ROW_WISE, b=pin("table_wise", shard(1)), constraints={"apart": [["a", "b"]]})


def test_mean_pools_cut_by_rows_next_to_a_pin_that_is_not() -> None:
    document = spec(ROW_WISE, b=TABLE_WISE, model__tables__0__pooling="mean")
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(document))
    (issue,) = caught.value.issues
    assert issue.pointer == PIN + "/sharding_type"
    assert 'table "b" of its module is pinned to a scheme that does not cut rows' in issue.message
    document["model"]["tables"][1]["module_path"] = "another.ebc"
    assert pinned_of(parse_spec(raw(document))).sharding_type is Scheme.ROW_WISE


def test_faults_of_several_tables_are_reported_together() -> None:
    with pytest.raises(InvalidProblem) as caught:
        request_of(pin("table_wise", shard(9)), b=pin("table_wise", shard(8)))
    assert [issue.pointer for issue in caught.value.issues] == [
        f"/model/tables/{index}/constraints/pinned/shards/0/rank" for index in range(2)
    ]


def test_the_least_width_is_no_assumption_about_pinned_tables() -> None:
    subjects = {item.subject for item in request_of(TABLE_WISE, b=COLUMN_WISE).assumptions}
    assert "model.tables.constraints.min_partition" not in subjects


def test_a_pin_without_shards_or_with_unknown_fields_is_malformed() -> None:
    assert refused(pin("table_wise"))[0] == PIN + "/shards"
    assert refused(pin("table_wise", shard(0, row=1)))[0] == PIN + "/shards/0/row"
