"""The command line: exit codes, what goes to stdout and what to stderr, and no traceback for bad input."""

import json
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from api.client import check_plan
from api.release import VERSION
from cost_models.hardware.profiles_loader import profile_ids
from planner.domain.formats.canonical_json import canonical_bytes, plan_digest
from planner.domain.formats.units import format_bytes
from tests.support.cli.run import Run
from tests.support.service.specs import raw, tiny
from tests.support.thorough import thorough

GIB = 1024**3


def table(name: str, rows: int = 1000, **changes: object) -> dict[str, object]:
    return {"name": name, "num_embeddings": rows, "embedding_dim": 64, "pooling_factor": 4.0, **changes}


def spec(*tables: dict[str, object], **changes: object) -> dict[str, object]:
    return {
        "name": "two tables",
        "model": {"batch_size_per_rank": 256, "tables": list(tables or (table("a"), table("b")))},
        "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 2},
        "solver": {"time_limit_seconds": 2},
        **changes,
    }


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec()))
    return path


def written(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "written.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def test_plan_writes_canonical_bytes_and_reports_people(run: Run, spec_file: Path, tmp_path: Path) -> None:
    answer = run("plan", spec_file, "-o", tmp_path / "plan.json")
    assert answer.code == 0
    assert answer.out == ""
    assert "Plan of two tables" in answer.err
    content = (tmp_path / "plan.json").read_bytes()
    document = json.loads(content)
    assert content == canonical_bytes(document)
    assert document["plan_digest"] == plan_digest(document)
    check_plan(document, world_size=2, ranks_per_host=2)


def test_a_default_says_how_many_tables_have_it(run: Run, tmp_path: Path) -> None:
    known = table("b", access={"zipf_alpha": 1.05})
    reported = " ".join(run("plan", written(tmp_path, spec(table("a"), known)), "--full").err.split())
    assert "every id may be a different row (1 of 2 tables)" in reported
    assert "model.tables.pooling = sum," in reported  # of all


def test_plan_without_a_file_prints_the_plan_alone(run: Run, spec_file: Path) -> None:
    answer = run("plan", spec_file)
    assert answer.code == 0
    assert answer.document["name"] == "two tables"
    assert "Plan of two tables" in answer.err
    assert "Seconds per rank" not in answer.err
    assert "Seconds per rank" in run("plan", spec_file, "--full").err
    assert run("plan", spec_file, "--quiet").err == ""


def test_plan_reads_standard_input(run: Run, spec_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(spec_file.read_bytes())))
    assert run("plan", "-").document["world_size"] == 2


def test_options_replace_fields_of_the_spec(run: Run, spec_file: Path) -> None:
    answer = run(
        *("plan", spec_file, "--cost-model", "torchrec", "--objective", "max_rank_time", "--partitioner", "greedy"),
        *("--seed", "7", "--num-hosts", "2", "--ranks-per-host", "4", "--time-limit", "1"),
    )
    document = answer.document
    assert document["objective"]["name"] == "max_rank_time"
    assert document["provenance"]["cost_model"].startswith("torchrec@")
    assert (document["provenance"]["partitioner"], document["provenance"]["seed"]) == ("greedy", 7)
    assert (document["world_size"], document["ranks_per_host"]) == (8, 4)


def test_set_replaces_any_field(run: Run, spec_file: Path) -> None:
    answer = run("plan", spec_file, "--set", "name=renamed", "--set", "hardware.overrides.hbm_bytes=8e9")
    assert answer.document["name"] == "renamed"
    # 8e9 bytes, less 15 %, less what input batches and dense parameters take
    capacity = answer.document["ranks"][0]["capacity_bytes"]["hbm"]
    assert 0.84 * 8e9 < capacity <= 0.85 * 8e9


@pytest.mark.parametrize(
    ("assignment", "reported"),
    [("solver.seed", "FIELD=VALUE"), (".seed=1", "FIELD=VALUE"), ("name.x=1", "not an object")],
)
def test_set_says_what_it_takes(run: Run, spec_file: Path, assignment: str, reported: str) -> None:
    answer = run("plan", spec_file, "--set", assignment)
    assert answer.code == 1
    assert reported in answer.err


def test_an_unknown_field_by_set_is_a_problem_with_a_pointer(run: Run, spec_file: Path) -> None:
    answer = run("plan", spec_file, "--set", "solver.sede=1")
    assert answer.code == 1
    assert "/solver/sede" in answer.err


def test_infeasible_is_exit_code_3_and_says_what_is_short(run: Run, tmp_path: Path) -> None:
    # each table has 10^7 rows x 64 x 4 B = 2.56 GB and fits two ranks of 2 GB; both together do not
    tables = [table(name, rows=10_000_000) for name in ("a", "b")]
    path = written(tmp_path, spec(*tables))
    small = ("--set", "hardware.overrides.hbm_bytes=2000000000", "--set", "hardware.overrides.ddr_bytes=0")
    answer = run("plan", path, *small)
    assert answer.code == 3
    assert answer.document["termination"]["reason"] == "INFEASIBLE"
    assert answer.document["plan_digest"] is None
    assert answer.document["shortfalls"][0]["hint"]
    assert answer.document["diagnosis"]["fixes"][0]["changes"][0]["pointer"]
    preserved = tmp_path / "no-plan.json"
    to_file = run("plan", path, "-o", preserved, *small)
    assert (to_file.code, to_file.out, preserved.exists()) == (3, "", False)
    assert "No plan of two tables: INFEASIBLE" in answer.err
    (shortfall,) = answer.document["shortfalls"]
    assert isinstance(shortfall["required_bytes"], int)
    assert isinstance(shortfall["available_bytes"], int)
    assert "short" in answer.err
    assert "fixes, each solved and its plan verified" in answer.err


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"", "empty"),
        (b"{", "not JSON"),
        (b'{"name": NaN}', "NaN"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b"\xff\xfe{\x00}\x00", "byte order mark"),
        (b'{"model": {"batch_size_per_rank": 1e999}}', "batch_size_per_rank"),
        (b'{"name": "\\ud800"}', "JSON"),
        (b"[" * 100_000, "nested"),
        (b"[1, 2, 3]", "object"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "validate"])
def test_hostile_files_are_bad_input(run: Run, tmp_path: Path, command: str, content: bytes, reported: str) -> None:
    answer = run(command, written(tmp_path, content))
    assert answer.code == 1
    assert reported in answer.err
    assert len(answer.err) < 64 * 1024


def test_hints_help_where_there_is_no_server(run: Run, spec_file: Path, plan_file: Path, tmp_path: Path) -> None:
    unknown = run("validate", spec_file, "--set", "nonsense=1")
    assert "remove it; the fields are listed in docs/spec.md" in " ".join(unknown.err.split())
    (tmp_path / "none.json").touch()
    (tmp_path / "cut.json").write_text("{")
    for arguments in (["plan", "none.json"], ["evaluate", spec_file, "none.json"], ["compare", plan_file, "none.json"]):
        answer = run(*(tmp_path / text if text == "none.json" else text for text in arguments))
        assert (answer.code, answer.out) == (1, "")
        assert "none.json is empty" in " ".join(answer.err.split())
    cut = run("plan", tmp_path / "cut.json")
    assert "the document is not JSON (line 1, column 2)" in " ".join(cut.err.split())


def test_every_problem_is_listed_with_its_place_and_the_way_out(run: Run, tmp_path: Path) -> None:
    tables = [table("a", rows=0), table("b", pooling_factor=-1.0)]
    answer = run("validate", written(tmp_path, spec(*tables, wrong=1)))
    assert answer.code == 1
    assert answer.document["valid"] is False
    pointers = {problem["pointer"] for problem in answer.document["problems"]}
    assert pointers == {"/model/tables/0/num_embeddings", "/model/tables/1/pooling_factor", "/wrong"}
    for pointer in pointers:
        assert pointer in answer.err


@pytest.mark.parametrize("arguments", [(), ("--set", "name=other")])
def test_problems_of_every_kind_are_in_one_answer(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    broken = spec(table("a"), table("a"), table("b", rows=0), constraints={"apart": [["a", "b"], ["a", "c"]]})
    broken["cost_model"] = "guess"
    answer = run("validate", written(tmp_path, broken), *arguments)
    assert answer.code == 1
    found = [problem["pointer"] for problem in answer.document["problems"]]
    assert found == [
        "/model/tables/2/num_embeddings",
        "/cost_model",
        "/model/tables/1/name",
        "/constraints/apart/1/1",
    ]


@thorough
def test_a_hundred_thousand_errors_make_a_short_answer(run: Run, tmp_path: Path) -> None:
    answer = run("validate", written(tmp_path, {f"k{i}": i for i in range(100_000)}))
    assert answer.code == 1
    assert len(answer.document["problems"]) <= 50
    assert len(answer.out) + len(answer.err) < 64 * 1024
    assert "and 99952 more" in answer.err  # 100,000 unknown and 2 missing fields, of which 50 are told


def test_a_missing_file_and_a_wrong_command_line_are_bad_input(run: Run, tmp_path: Path) -> None:
    assert run("plan", tmp_path / "none.json").code == 1
    assert run("plan").code == 1
    assert run("plan", tmp_path / "none.json", "--no-such-option").code == 1
    assert run("no-such-command").code == 1
    assert run("--help").code == 0


def test_the_list_of_commands_is_whole_lines_of_a_narrow_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("--help").out.partition("Commands:")[2].splitlines()
    assert len([line for line in lines if line.strip()]) > 20
    assert not [line for line in lines if line.endswith("...") or "``" in line]


def test_a_plan_that_cannot_be_written_is_bad_input(run: Run, spec_file: Path, tmp_path: Path) -> None:
    answer = run("plan", spec_file, "-o", tmp_path / ("x" * 300))
    assert answer.code == 1
    assert "cannot write" in answer.err


def test_a_number_that_the_hardware_lacks_is_named(run: Run, tmp_path: Path) -> None:
    hardware = {"profile": "custom", "ranks_per_host": 2, "overrides": {"hbm_bytes": 8e10}}
    answer = run("plan", written(tmp_path, spec(hardware=hardware)))
    assert answer.code == 1
    assert "bytes_per_second" in answer.err


def test_validate_reports_warnings(run: Run, tmp_path: Path) -> None:
    answer = run("validate", written(tmp_path, spec(table("seen"), table("never", pooling_factor=0.0))))
    assert answer.code == 0
    assert answer.document["valid"] is True
    assert "never" in answer.document["warnings"][0]["message"]
    assert "2 tables on 2 ranks" in answer.err


@pytest.fixture
def plan_file(run: Run, spec_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    assert run("plan", spec_file, "-o", path).code == 0
    return path


def test_evaluate_agrees_with_the_plan(run: Run, spec_file: Path, plan_file: Path) -> None:
    answer = run("evaluate", spec_file, plan_file)
    assert answer.code == 0
    planned = json.loads(plan_file.read_text())["objective"]["seconds"]
    assert answer.document["score"]["objective_seconds"] == pytest.approx(planned, rel=1e-12)
    other = run("evaluate", spec_file, plan_file, "--cost-model", "torchrec")
    assert other.document["score"]["cost_model"].startswith("torchrec@")


def test_evaluate_reports_the_fullest_rank_of_each_tier(run: Run, tmp_path: Path) -> None:
    """Of tables a of 64 MB in host memory and b of 32 MB in the accelerators', with nothing added up."""
    preserved = {
        name: {"sharding_types": ["table_wise"], "compute_kernels": [kernel]}
        for name, kernel in (("a", "fused_uvm"), ("b", "fused"))
    }
    tables = (table("a", 250_000, constraints=preserved["a"]), table("b", 125_000, constraints=preserved["b"]))
    path, plan = written(tmp_path, spec(*tables)), tmp_path / "plan.json"
    assert run("plan", path, "-o", plan).code == 0
    reported = run("evaluate", path, plan).err
    ranks = json.loads(plan.read_text())["ranks"]
    for tier, least_mib in (("hbm", 30), ("ddr", 61)):
        most = max(rank["bytes"][tier] for rank in ranks)
        assert least_mib < most / 2**20 < least_mib + 15
        assert f"fullest in {tier}   {format_bytes(most)} of " in reported


def test_evaluate_rejects_a_plan_that_must_not_be_used(run: Run, tmp_path: Path, spec_file: Path) -> None:
    placed = {
        "sharding_type": "table_wise",
        "compute_kernel": "fused",
        "shards": [{"rank": 0, "row_offset": 0, "num_rows": 999, "column_offset": 0, "num_columns": 64}],
    }
    plan = {"world_size": 2, "ranks_per_host": 2, "tables": [{"name": name, **placed} for name in ("a", "b")]}
    answer = run("evaluate", spec_file, written(tmp_path, plan))
    assert answer.code == 1
    assert answer.document["valid"] is False
    assert "must not be used" in answer.err


def test_explain_reports_why_a_plan_is_so(run: Run, spec_file: Path, plan_file: Path) -> None:
    answer = run("explain", spec_file, plan_file)
    assert answer.code == 0
    plan = json.loads(plan_file.read_text())
    assert answer.document["plan_digest"] == plan["plan_digest"]
    assert answer.document["spec_digest"] == plan["spec_digest"]
    assert answer.document["objective"]["seconds"] == pytest.approx(plan["objective"]["seconds"], rel=1e-9)
    assert {one["name"] for one in answer.document["tables"]} == {"a", "b"}
    assert "Why the plan of" in answer.err
    assert len(run("explain", spec_file, plan_file, "--tables", "1").document["tables"]) == 1
    other = run("explain", spec_file, plan_file, "--cost-model", "torchrec")
    assert other.document["cost_model"].startswith("torchrec@")


def test_explain_refuses_a_plan_that_must_not_be_used(
    run: Run, spec_file: Path, plan_file: Path, tmp_path: Path
) -> None:
    plan = json.loads(plan_file.read_text())
    del plan["plan_digest"]
    plan["tables"][0]["shards"][0]["num_rows"] -= 1
    answer = run("explain", spec_file, written(tmp_path, plan))
    assert (answer.code, answer.out) == (1, "")
    assert "/tables/0" in answer.err
    assert "give the spec first" in run("explain", plan_file, spec_file).err


def test_explain_reports_another_spec_and_a_plan_without_digest(run: Run, plan_file: Path, tmp_path: Path) -> None:
    other = written(tmp_path, spec(table("a"), table("b", pooling_factor=5.0)))
    reported = run("explain", other, plan_file)
    assert reported.code == 0
    assert "/spec_digest" in reported.err
    plan = {key: value for key, value in json.loads(plan_file.read_text()).items() if not key.endswith("_digest")}
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(plan))
    assert run("explain", other, bare).document["plan_digest"] is None


def test_compare(run: Run, spec_file: Path, plan_file: Path, tmp_path: Path) -> None:
    same = run("compare", plan_file, plan_file)
    assert same.code == 0
    assert same.document["same_plan"] is True
    other = tmp_path / "other.json"
    run("plan", spec_file, "-o", other, "--set", 'constraints.same_rank=[["a", "b"]]')
    answer = run("compare", plan_file, other)
    assert answer.code == 0
    assert answer.document["same_plan"] is False
    assert "Objectives, phases and memory" in answer.err


def test_export_for_torchrec(run: Run, plan_file: Path, tmp_path: Path) -> None:
    answer = run("export", plan_file, "--format", "torchrec", "--module-path", "model.ebc", "--device", "cpu")
    assert answer.code == 0
    assert set(answer.document["plan"]["model.ebc"]) == {"a", "b"}
    assert run("export", plan_file, "--format", "json").document == json.loads(plan_file.read_text())
    missing = run("export", plan_file, "--format", "torchrec")
    assert missing.code == 1
    assert "module" in missing.err
    assert run("export", plan_file, "--format", "onnx").code == 1


def test_export_for_hugectr(run: Run, spec_file: Path, tmp_path: Path) -> None:
    plan_file = tmp_path / "for_hugectr.json"
    changes = (
        "--set",
        "runtime=hugectr",
        "--set",
        "model.tables.0.optimizer=sgd",
        "--set",
        "model.tables.1.optimizer=sgd",
    )
    assert run("plan", spec_file, *changes, "-o", plan_file).code == 0
    answer = run("export", plan_file, "--format", "hugectr")
    assert answer.code == 0
    assert answer.document["plan_digest"] == json.loads(plan_file.read_text())["plan_digest"]
    assert {name for held in answer.document["shard_matrix"] for name in held} == {"a", "b"}
    refused = run("export", plan_file, "--format", "hugectr", "--device", "cpu")
    assert refused.code == 1
    assert "device must be cuda" in refused.err


def test_export_for_distributed_embeddings(run: Run, spec_file: Path, tmp_path: Path) -> None:
    plan_file = tmp_path / "for_distributed_embeddings.json"
    changes = [f"model.tables.{table}.optimizer=sgd" for table in (0, 1)]
    changes += [f"model.tables.{table}.constraints.ranks=[{table}]" for table in (0, 1)]
    changes += [f'model.tables.{table}.constraints.sharding_types=["table_wise"]' for table in (0, 1)]
    settings = [part for change in ("runtime=distributed_embeddings", *changes) for part in ("--set", change)]
    assert run("plan", spec_file, *settings, "-o", plan_file).code == 0
    answer = run("export", plan_file, "--format", "distributed_embeddings")
    assert answer.code == 0
    assert answer.document["plan_digest"] == json.loads(plan_file.read_text())["plan_digest"]
    assert answer.document["strategy"]["table_ids"] == [[0], [1]]
    refused = run("export", plan_file, "--format", "distributed_embeddings", "--device", "cpu")
    assert refused.code == 1
    assert "device must be cuda" in refused.err


def test_export_for_torcheasyrec(run: Run, spec_file: Path, tmp_path: Path) -> None:
    plan_file = tmp_path / "for_torcheasyrec.json"
    assert run("plan", spec_file, "--set", "runtime=torcheasyrec", "-o", plan_file).code == 0
    answer = run("export", plan_file, "--format", "torcheasyrec")
    assert answer.code == 0
    assert answer.document["plan_digest"] == json.loads(plan_file.read_text())["plan_digest"]
    assert {one["name"] for one in answer.document["tables"]} == {"a", "b"}
    refused = run("export", plan_file, "--format", "torcheasyrec", "--device", "cpu")
    assert refused.code == 1
    assert "device must be cuda" in refused.err


def test_export_for_sparsecores(run: Run, spec_file: Path, tmp_path: Path) -> None:
    """Limits where the spec is given, with its changes; the reason that there are none where not."""
    plan_file = tmp_path / "for_sparsecores.json"
    changes = []
    for change in (
        "runtime=sparsecore",
        "hardware.profile=tpu-v5p",
        "hardware.overrides.intra_host_bytes_per_second=4e11",
        *(f"model.tables.{index}.optimizer=adam" for index in (0, 1)),
        *(f"model.tables.{index}.access.zipf_alpha=1.05" for index in (0, 1)),
    ):
        changes += ["--set", change]
    assert run("plan", spec_file, *changes, "-o", plan_file).code == 0
    bare = run("export", plan_file, "--format", "sparsecore")
    assert bare.code == 0
    assert {stack["max_ids_per_partition"] for stack in bare.document["stacks"]} == {None}
    full = run("export", plan_file, "--format", "sparsecore", "--spec", spec_file, *changes)
    assert full.code == 0
    assert "warning" not in full.err
    assert all(stack["max_ids_per_partition"] > 0 for stack in full.document["stacks"])
    other = run("export", plan_file, "--format", "sparsecore", "--spec", spec_file, *changes[:-2])
    assert other.code == 0
    assert "the plan was made for the spec" in other.err
    none_other = run("export", plan_file, "--format", "json", "--spec", spec_file)
    assert none_other.code == 1
    assert "--spec says nothing to the format json" in none_other.err
    wrong = run("export", plan_file, "--format", "sparsecore", "--sparsecores-per-chip", "2")
    assert wrong.code == 1
    assert "has 4 SparseCores, not 2" in wrong.err


@pytest.mark.parametrize("command", [("export", "--format", "torchrec"), ("compare",)])
def test_a_plan_that_was_changed_is_refused(run: Run, plan_file: Path, command: tuple[str, ...]) -> None:
    plan = json.loads(plan_file.read_text())
    plan["tables"][0]["shards"][0]["rank"] ^= 1
    plan_file.write_text(json.dumps(plan))
    files = [plan_file] * (2 if command[0] == "compare" else 1)
    answer = run(command[0], *files, *command[1:])
    assert answer.code == 1
    assert "/plan_digest" in answer.err


def test_a_document_that_is_no_plan_of_ours_is_refused(run: Run, spec_file: Path, tmp_path: Path) -> None:
    assert run("compare", spec_file, spec_file).code == 1
    bare = {"world_size": 1, "ranks_per_host": 1, "tables": []}
    assert run("export", written(tmp_path, bare), "--format", "json").code == 1


def test_fields_that_may_be_null_may_be_missing(run: Run, plan_file: Path, tmp_path: Path) -> None:
    older = {key: value for key, value in json.loads(plan_file.read_text()).items() if value is not None}
    assert {"movement", "serving"}.isdisjoint(older)
    assert run("export", written(tmp_path, older), "--format", "json").code == 0
    del older["phases"]
    answer = run("export", written(tmp_path, older), "--format", "json")
    assert answer.code == 1
    assert "/phases" in answer.err
    assert "`shardplan import` converts them" in " ".join(answer.err.split())


def test_fetch_without_a_server_is_trouble(run: Run, tmp_path: Path) -> None:
    server = ("--server", "http://127.0.0.1:1", "--attempts", "1")
    answer = run("fetch", "ads/ranker/prod", "-o", tmp_path / "plan.json", *server)
    assert answer.code == 4
    assert "no answer" in answer.err
    assert not (tmp_path / "plan.json").exists()


def test_fetch_refuses_a_channel_name_that_climbs(run: Run, tmp_path: Path) -> None:
    answer = run("fetch", "ads/../prod", "-o", tmp_path / "plan.json")
    assert answer.code == 1
    assert "channel name" in answer.err


def test_serve_refuses_settings_that_are_wrong(run: Run) -> None:
    answer = run("serve", "--port", "70000")
    assert answer.code == 1
    assert "port" in answer.err


def test_doctor_finds_this_installation_well(run: Run, tmp_path: Path) -> None:
    answer = run("doctor", "--data-dir", tmp_path / "not" / "there" / "yet")
    assert answer.code == 0, answer.err
    assert answer.document["ok"] is True
    assert [check["name"] for check in answer.document["checks"] if not check["ok"]] == []
    (profiles,) = [check["detail"] for check in answer.document["checks"] if check["name"] == "hardware profiles"]
    assert set(profile_ids()) <= set(profiles.split(", "))  # who writes a spec finds their names here
    assert list(tmp_path.iterdir()) == []  # it leaves nothing behind


def test_doctor_reports_a_disk_that_is_full(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.cli.admin.doctor.LEAST_FREE_BYTES", 10**18)
    answer = run("doctor", "--data-dir", tmp_path)
    assert answer.code == 4
    assert "failed" in answer.err
    failed = [check for check in answer.document["checks"] if not check["ok"]]
    assert [check["name"] for check in failed] == ["disk"]


def test_doctor_reports_a_ray_cluster_that_cannot_be_used(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDPLAN_RUNNER", "ray")
    for address, stated in ((None, "SHARDPLAN_RAY_ADDRESS"), ("127.0.0.1:1", "ray")):
        if address is not None:
            monkeypatch.setenv("SHARDPLAN_RAY_ADDRESS", address)
        answer = run("doctor", "--data-dir", tmp_path)
        assert answer.code == 4
        (failed,) = [check for check in answer.document["checks"] if not check["ok"]]
        assert failed["name"] == "runner"
        assert stated.lower() in failed["detail"].lower()


def test_version(run: Run) -> None:
    answer = run("--version")
    assert (answer.code, answer.out) == (0, f"shardplan {VERSION}\n")


@pytest.mark.parametrize("item", ["1", "b"])
def test_set_reaches_items_of_lists(run: Run, spec_file: Path, item: str) -> None:
    answer = run("plan", spec_file, "--set", f"model.tables.{item}.data_type=fp16")
    assert [table["data_type"] for table in answer.document["tables"]] == ["fp32", "fp16"]


@pytest.mark.parametrize("item", ["2", "c", "-1"])
def test_set_says_which_items_there_are(run: Run, spec_file: Path, item: str) -> None:
    answer = run("plan", spec_file, "--set", f"model.tables.{item}.data_type=fp16")
    assert answer.code == 1
    assert f"tables has no item {item}; items are 0 to 1, a name, or * for all" in answer.err


def test_a_name_of_two_tables_sets_neither(run: Run, tmp_path: Path) -> None:
    table = {"name": "a", "num_embeddings": 1000, "embedding_dim": 16, "pooling_factor": 1}
    tables = [{**table, "module_path": "m.user"}, {**table, "module_path": "m.item"}]
    path = tmp_path / "spec.json"
    path.write_bytes(raw(tiny(model__tables=tables)))
    answer = run("validate", path, "--set", "model.tables.a.embedding_dim=8")
    assert answer.code == 1
    assert "2 items of tables have this name; use a number: 0, 1" in " ".join(answer.err.split())
    assert run("validate", path, "--set", "model.tables.1.embedding_dim=8").code == 0


def test_the_spec_is_never_overwritten(run: Run, spec_file: Path) -> None:
    before = spec_file.read_bytes()
    answer = run("plan", spec_file, "-o", spec_file)
    assert answer.code == 1
    assert "is the input file" in answer.err
    assert spec_file.read_bytes() == before


@pytest.mark.parametrize("command", [["plan"], ["certify", "plan.json"], ["improve", "plan.json"]])
def test_an_output_that_cannot_be_is_refused_before_any_work(
    run: Run, spec_file: Path, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """A mistyped path makes no folders, and costs no search."""
    monkeypatch.setattr("planner.pipeline.plan", lambda *_, **__: pytest.fail("it was planned"))
    arguments = [command[0], spec_file, *([plan_file] if command[1:] else [])]
    answer = run(*arguments, "-o", tmp_path / "nowhere" / "out.json")
    assert answer.code == 1
    assert "make it first" in answer.err
    assert not (tmp_path / "nowhere").exists()
    assert "is a folder: name a file in it" in run(*arguments, "-o", tmp_path).err


def test_exports_and_fetches_make_no_folders(run: Run, plan_file: Path, tmp_path: Path) -> None:
    for command in (["export", plan_file], ["fetch", "a/b", "--server", "http://127.0.0.1:1"]):
        answer = run(*command, "-o", tmp_path / "nowhere" / "out.json")
        assert answer.code == 1
        assert "make it first" in answer.err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("command", ["fetch", "batch"])
def test_a_server_without_a_scheme_is_bad_input(run: Run, spec_file: Path, tmp_path: Path, command: str) -> None:
    what = {"fetch": "a/b", "batch": spec_file}[command]
    answer = run(command, what, "--server", "localhost:18700", "-o", tmp_path / "out")
    assert answer.code == 1
    assert "write http://localhost:18700" in " ".join(answer.err.split())
    assert not (tmp_path / "out").exists()


def test_a_worker_without_a_database_is_bad_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHARDPLAN_DATABASE_URL", raising=False)
    answer = run("worker")
    assert answer.code == 1
    assert "set SHARDPLAN_DATABASE_URL" in answer.err
    assert "working on" not in answer.err


def test_a_worker_that_would_run_nothing_is_bad_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDPLAN_DATABASE_URL", "postgresql://nowhere/shardplan")
    monkeypatch.setenv("SHARDPLAN_SOLVER_PROCESSES", "0")
    answer = run("worker")
    assert answer.code == 1
    assert "SHARDPLAN_SOLVER_PROCESSES is 0" in answer.err


def test_a_spec_in_the_place_of_a_plan_is_named(run: Run, spec_file: Path, plan_file: Path) -> None:
    for command in (
        ["evaluate", spec_file, spec_file],
        ["explain", spec_file, spec_file],
        ["compare", plan_file, spec_file],
        ["export", spec_file],
    ):
        answer = run(*command)
        assert answer.code == 1
        assert f"{spec_file} is a spec, and a plan is asked for" in " ".join(answer.err.split())
        assert "required" not in answer.err


def test_a_name_that_is_not_there_comes_with_those_that_are(run: Run, spec_file: Path) -> None:
    reported = " ".join(run("plan", spec_file, "--partitioner", "foo").err.split())
    assert "use one of " in reported
    assert "cp_sat" in reported
    assert "profile" not in reported


def test_swapped_arguments_are_named(run: Run, spec_file: Path, plan_file: Path) -> None:
    answer = run("evaluate", plan_file, spec_file)
    assert answer.code == 1
    assert "give the spec first" in answer.err


def test_evaluate_reports_a_false_digest_and_another_spec(run: Run, plan_file: Path, tmp_path: Path) -> None:
    other = written(tmp_path, spec(table("a"), table("b", pooling_factor=5.0)))
    plan = json.loads(plan_file.read_text())
    plan["plan_digest"] = "sha256:" + "0" * 64
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(plan))
    answer = run("evaluate", other, changed)
    assert answer.code == 1
    assert "the plan breaks 1 rule and" in answer.err
    assert [violation["code"] for violation in answer.document["violations"]] == ["digest-mismatch"]
    assert [warning["code"] for warning in answer.document["warnings"]] == ["spec-mismatch"]


def test_lines_for_people_fit_80_columns(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, spec(*(table(f"table_with_a_long_name_{n}", pooling_factor=0) for n in range(9))))
    answer = run("validate", path)
    assert answer.code == 0
    assert max(len(line) for line in answer.err.splitlines()) <= 80


def test_an_interrupt_keeps_the_best_plan(
    run: Run, spec_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(work: Callable[[], object]) -> object:
        work()
        raise KeyboardInterrupt

    monkeypatch.setattr("api.cli.plans.found_plan.interruptible", interrupted)
    path = tmp_path / "best.json"
    answer = run("plan", spec_file, "-o", path, "--quiet")
    assert answer.code == 0
    document = json.loads(path.read_text())
    assert (document["termination"]["reason"], document["termination"]["limit"]) == ("FEASIBLE", "cancelled")
    assert run("evaluate", spec_file, path).code == 0


def test_an_interrupt_without_a_plan_is_one_line(run: Run, spec_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_work: Callable[[], object]) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("api.cli.plans.found_plan.interruptible", interrupted)
    answer = run("plan", spec_file)
    assert (answer.code, answer.out, answer.err) == (130, "", "shardplan: interrupted\n")


def test_plan_moves_from_a_previous_plan_only_where_that_pays(run: Run, spec_file: Path, tmp_path: Path) -> None:
    first = tmp_path / "first.json"
    assert run("plan", spec_file, "-o", first).code == 0
    again = run("plan", spec_file, "--previous", first, "--set", "previous_plan.remaining_steps=5")
    assert again.code == 0
    assert again.document["tables"] == json.loads(first.read_bytes())["tables"]
    assert again.document["plan_digest"] == json.loads(first.read_bytes())["plan_digest"]
    assert (again.document["movement"]["moved_bytes"], again.document["movement"]["remaining_steps"]) == (0, 5)
    assert "nothing moves" in again.err
    refused = run("plan", spec_file, "--previous", first, "-o", first)
    assert refused.code == 1
    assert "is the input file" in refused.err


def test_a_search_begins_at_a_plan(run: Run, spec_file: Path, tmp_path: Path) -> None:
    first = tmp_path / "first.json"
    assert run("plan", spec_file, "-q", "-o", first).code == 0
    begun = json.loads(first.read_bytes())
    again = run("plan", spec_file, "--warm-start", first, "--partitioner", "greedy", "--set", "solver.relative_gap=0")
    assert again.code == 0
    assert again.document["objective"]["seconds"] <= begun["objective"]["seconds"]
    assert again.document["movement"] is None
    refused = run("plan", spec_file, "--warm-start", first, "-o", first)
    assert refused.code == 1
    assert "is the input file" in refused.err
    both = run("plan", spec_file, "--warm-start", first, "--previous", first)
    assert both.code == 1
    assert "/solver/warm_start" in both.err


def test_a_plan_of_an_earlier_version_may_be_the_previous_one(run: Run, spec_file: Path, tmp_path: Path) -> None:
    document = run("plan", spec_file, "-q").document
    del document["movement"]
    again = run("plan", spec_file, "-q", "--previous", written(tmp_path, document))
    assert again.document["movement"]["previous_plan_digest"] == document["plan_digest"]


def test_a_plan_is_no_digest_on_the_command_line(run: Run, tmp_path: Path) -> None:
    answer = run("plan", written(tmp_path, spec(previous_plan={"digest": "sha256:" + 64 * "0"})))
    assert answer.code == 1
    assert "/previous_plan/digest" in answer.err
    assert "--previous PLAN.json" in answer.err
