"""From a spec to a problem, with every cross-check."""

import json

import pytest

from api.schemas.spec import CommTypeName
from api.schemas.table import DataTypeName, KernelName, OptimizerName, SchemeName
from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_evaluation, parse_plan, parse_spec
from api.specs.request import SolveRequest
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Evidence, Kernel, Scheme, Tier
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.problem.access import AccessCdf, MissRatioCurve, ReuseHistogram, ZipfAccess
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.table import Table
from planner.errors import InvalidProblem
from tests.support.service.specs import TINY, raw, tiny


def request_of(**changes: object) -> SolveRequest:
    return parse_spec(raw(tiny(**changes)))


def pointers(**changes: object) -> list[str]:
    with pytest.raises(InvalidProblem) as caught:
        request_of(**changes)
    assert all(issue.message and issue.hint for issue in caught.value.issues)
    return [issue.pointer for issue in caught.value.issues]


@pytest.mark.parametrize("seconds", [0.000999, 1e-9, 0, -1])
def test_a_time_limit_below_a_millisecond_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(tiny(solver__time_limit_seconds=seconds)))
    (issue,) = caught.value.issues
    assert (issue.pointer, issue.hint) == ("/solver/time_limit_seconds", "use at least 0.001")
    assert parse_spec(raw(tiny(solver__time_limit_seconds=0.001))).limits.time_limit_seconds == 0.001


def test_names_in_schemas_are_those_of_the_domain() -> None:
    assert set(SchemeName.__args__) == set(Scheme.labels())
    assert set(KernelName.__args__) == set(Kernel.labels())
    assert set(DataTypeName.__args__) == set(DATA_TYPES)
    assert set(CommTypeName.__args__) <= set(DATA_TYPES)
    assert set(OptimizerName.__args__) == set(OPTIMIZERS)


def test_a_spec_becomes_a_problem() -> None:
    request = request_of(
        model__tables__0__data_type="fp16",
        model__tables__0__constraints={"sharding_types": ["row_wise"], "ranks": [1, 0], "min_partition": 4},
        model__dense={"forward_seconds": 0.004, "parameter_bytes": 1000},
        constraints={"same_rank": [["a", "b"]], "reserved_hbm_fraction": 0.5},
        objective="max_rank_time",
        cost_model="torchrec",
        solver={"seed": 7, "relative_gap": 0.1, "work_limit_seconds": 2},
    )
    problem = request.problem
    assert [table.name for table in problem.tables] == ["a", "b"]
    assert problem.tables[0].data_type is DATA_TYPES["fp16"]
    assert problem.tables[0].features[0].name == "a"
    assert problem.tables[0].constraints.sharding_types == {Scheme.ROW_WISE}
    assert problem.tables[0].constraints.ranks == {0, 1}
    assert problem.same_rank == (frozenset({0, 1}),)
    assert problem.world_size == 2
    assert problem.dense.window_seconds == 0.004
    assert problem.reservation.hbm_fraction == 0.5
    assert (problem.objective, request.cost_model.name, request.partitioner.name) == (
        "max_rank_time",
        "torchrec",
        "portfolio",
    )
    assert (request.limits.seed, request.limits.relative_gap, request.limits.time_limit_seconds) == (7, 0.1, 10.0)
    assert request.limits.work_limit_seconds == 2


@pytest.mark.parametrize(
    ("solver", "stated"),
    [
        ({"work_limit_seconds": 20}, "work_limit_seconds 20 exceeds time_limit_seconds 10"),
        ({"work_limit_seconds": 2, "reproducible": False}, "work_limit_seconds is for reproducible solves"),
    ],
)
def test_work_is_counted_within_the_time_limit_of_a_reproducible_solve(solver: dict[str, object], stated: str) -> None:
    with pytest.raises(RejectedDocument) as caught:
        request_of(solver=solver)
    (issue,) = caught.value.issues
    assert issue.pointer == "/solver"
    assert stated in issue.message


@pytest.mark.parametrize(
    ("access", "kind"),
    [
        ({"zipf_alpha": 1.05}, ZipfAccess),
        ({"reuse_histogram": [1.0] + [0.0] * 16}, ReuseHistogram),
        ({"access_cdf": [[0.1, 0.9], [1, 1]]}, AccessCdf),
        ({"miss_ratio_curve": [[0.1, 0.3], [0.5, 0.05]]}, MissRatioCurve),
    ],
)
def test_every_kind_of_access_is_understood(access: dict[str, object], kind: type) -> None:
    assert isinstance(request_of(model__tables__0__access=access).problem.tables[0].access, kind)


def test_the_normalised_spec_means_the_same() -> None:
    request = request_of(model__tables__1__access={"zipf_alpha": 1.05}, hardware__overrides={"hbm_bytes": 5e10})
    again = parse_spec(canonical_bytes(request.spec))
    assert again.spec == request.spec
    assert again.spec_digest == request.spec_digest
    assert again.problem == request.problem


def test_spelling_does_not_change_the_digest() -> None:
    # Shorthand and features, sets in another order, defaults spelled out, other white space.
    short = request_of(model__tables__0__constraints={"ranks": [0, 1]})
    spelled = tiny(
        model__tables__0__constraints={"ranks": [1, 0, 1]}, constraints={"same_rank": []}, cost_model="roofline"
    )
    del spelled["model"]["tables"][0]["pooling_factor"]
    spelled["model"]["tables"][0]["features"] = [{"name": "a", "pooling_factor": 2}]
    assert parse_spec(json.dumps(spelled, indent=3).encode()).spec_digest == short.spec_digest


def test_the_digest_covers_what_determines_the_problem_and_nothing_else() -> None:
    digest = request_of().spec_digest
    for change in (
        {"name": "other"},
        {"solver__seed": 1},
        {"solver__time_limit_seconds": 7},
        {"solver__partitioner": "cp_sat"},
    ):
        assert request_of(**change).spec_digest == digest, change
        assert request_of(**change).spec != request_of().spec, change
    for change in (
        {"model__batch_size_per_rank": 17},
        {"hardware__num_hosts": 2},
        {"hardware__overrides": {"hbm_bytes": 1e10}},
        {"constraints": {"reserved_hbm_fraction": 0.2}},
        {"objective": "max_rank_time"},
        {"cost_model": "torchrec"},
    ):
        assert request_of(**change).spec_digest != digest, change


def test_another_cost_model_for_one_reading_does_not_hide_which_spec_it_was() -> None:
    request = parse_spec(raw(TINY), cost_model="torchrec")
    assert request.cost_model.name == "torchrec"
    assert request.spec_digest == request_of(cost_model="torchrec").spec_digest
    assert request.stated_spec_digest == request_of().spec_digest != request.spec_digest


def listed(spec: dict[str, object]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(spec))
    assert all(issue.message and issue.hint for issue in caught.value.issues)
    return [(issue.pointer, issue.code) for issue in caught.value.issues]


def test_broken_form_does_not_hide_names_that_are_wrong() -> None:
    overrides = {"hbm_bytes": -1, "nope": 3}
    assert listed(tiny(hardware__overrides=overrides, cost_model="guess", solver__seed="x")) == [
        ("/hardware/overrides/hbm_bytes", "invalid-value"),
        ("/solver/seed", "invalid-value"),
        ("/hardware/overrides/nope", "unknown-field"),
        ("/cost_model", "unknown-cost-model"),
    ]
    body = {"spec": tiny(hardware__profile="dgx-1"), "plan": {"world_size": 0}}
    with pytest.raises(InvalidProblem) as caught:
        parse_evaluation(raw(body))
    assert "/spec/hardware/profile" in [issue.pointer for issue in caught.value.issues]


@pytest.mark.parametrize("spec", [None, [], {"hardware": 3}, {"hardware": {"overrides": []}, "model": {"tables": {}}}])
def test_a_document_of_another_shape_is_only_reported_its_shape(spec: object) -> None:
    with pytest.raises(InvalidProblem):
        parse_spec(raw(spec))
    with pytest.raises(InvalidProblem):
        parse_evaluation(raw({"spec": spec, "plan": spec}))


def test_statistics_that_are_not_used_are_stated_and_assumed_away() -> None:
    request = request_of(model__tables__0__access={"miss_ratio_curve": [[0.1, 0.3], [0.5, 0.05]]})
    (warning,) = request.warnings
    assert (warning.code, warning.severity) == ("statistics-not-used", "warning")
    assert warning.pointer == "/model/tables/0/access/miss_ratio_curve"
    assert 'of 1 table prices caches and says nothing of distinct rows: "a"' in warning.message
    (note,) = (item for item in request.assumptions if item.subject == "model.tables.access.miss_ratio_curve")
    assert "every id may be a different row" in note.value
    assert not request_of(model__tables__0__access={"zipf_alpha": 1.05}).warnings


def test_overrides_replace_numbers_and_are_known_as_given() -> None:
    hardware = request_of(hardware__overrides={"hbm_bytes": 1e10}).problem.cluster.hardware
    assert hardware.numbers["hbm_bytes"].value == 1e10
    assert hardware.numbers["hbm_bytes"].evidence is Evidence.GIVEN
    assert hardware.numbers["ddr_bytes"] == load_profile("dgx-h100-80g").numbers["ddr_bytes"]


def test_a_custom_profile_takes_everything_from_the_spec() -> None:
    numbers = {"hbm_bytes": 1e10, "hbm_bytes_per_second": 1e12, "intra_host_bytes_per_second": 1e11}
    request = request_of(hardware={"profile": "custom", "ranks_per_host": 16, "overrides": numbers})
    assert {name: q.value for name, q in request.problem.cluster.hardware.numbers.items()} == numbers
    assert request.problem.world_size == 16


def test_ranks_may_differ_in_memory() -> None:
    request = request_of(hardware__overrides={"hbm_bytes_by_rank": [1e10, 2e10]})
    assert request.problem.cluster.tier_bytes(1, Tier.HBM) == 2e10


def test_ranks_may_differ_in_speed() -> None:
    request = request_of(hardware__overrides={"relative_speed_by_rank": [1, 0.5]})
    assert request.problem.cluster.relative_speed_by_rank == (1.0, 0.5)
    assert request.spec["hardware"]["overrides"] == {"relative_speed_by_rank": [1.0, 0.5]}
    again = parse_spec(canonical_bytes(request.spec))
    assert (again.problem, again.spec_digest) == (request.problem, request.spec_digest)
    assert request.spec_digest != request_of().spec_digest


@pytest.mark.parametrize("speed", [0, -1, 0.0001, 10.5, "fast"])
def test_a_speed_is_between_a_thousandth_and_ten_times_the_profile_s(speed: object) -> None:
    where = "/hardware/overrides/relative_speed_by_rank/1"
    assert pointers(hardware__overrides={"relative_speed_by_rank": [1, speed]}) == [where]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"model__tables__1__name": "a"}, "/model/tables/1/name"),
        ({"model__tables__1__embedding_dim": 6}, "/model/tables/1/embedding_dim"),
        ({"model__tables__1__data_type": "fp8"}, "/model/tables/1/data_type"),
        ({"model__tables__1__data_type": "int8"}, "/model/tables/1/data_type"),
        ({"runtime": "generic", "model__tables__1__data_type": "int8"}, "/model/tables/1/optimizer"),
        ({"model__tables__1__access": {"access_cdf": [[0.5, 0.2], [1, 1]]}}, "/model/tables/1/access/access_cdf"),
        ({"model__tables__1__access": {"reuse_histogram": [0] * 17}}, "/model/tables/1/access/reuse_histogram"),
        ({"model__tables__0__constraints": {"ranks": [0, 2]}}, "/model/tables/0/constraints/ranks"),
        ({"model__tables__0__constraints": {"hosts": [1]}}, "/model/tables/0/constraints/hosts"),
        ({"model__tables__0__constraints": {"min_partition": 12}}, "/model/tables/0/constraints/min_partition"),
        ({"constraints__same_rank": [["a", "c"]]}, "/constraints/same_rank/0/1"),
        ({"constraints__apart": [["a", "a"]]}, "/constraints/apart/0"),
        ({"constraints__same_rank": [["a", "b"]], "constraints__apart": [["b", "a"]]}, "/constraints/apart/0"),
        ({"hardware__profile": "dgx-1"}, "/hardware/profile"),
        ({"hardware__ranks_per_host": 9}, "/hardware/ranks_per_host"),
        ({"hardware__num_hosts": 4096}, "/hardware/num_hosts"),
        ({"hardware__overrides": {"hbm_bytes_by_rank": [1.0]}}, "/hardware/overrides/hbm_bytes_by_rank"),
        ({"hardware__overrides": {"relative_speed_by_rank": [1]}}, "/hardware/overrides/relative_speed_by_rank"),
        ({"hardware__overrides": {"hbm_gigabytes": 80}}, "/hardware/overrides/hbm_gigabytes"),
        ({"hardware__overrides": {"<b>": 80}}, "/hardware/overrides"),
        ({"hardware__overrides": {"hbm_bytes_per_second": 0}}, "/hardware/overrides/hbm_bytes_per_second"),
        ({"hardware": {"profile": "custom"}}, "/hardware/overrides"),
        ({"cost_model": "guess"}, "/cost_model"),
        ({"solver__partitioner": "guess"}, "/solver/partitioner"),
    ],
)
def test_cross_checks_say_where(changes: dict[str, object], where: str) -> None:
    assert pointers(**changes) == [where]


def test_one_feature_twice_in_a_table_is_refused_and_in_two_tables_is_not() -> None:
    feature = {"name": "f", "pooling_factor": 1.0}
    shared = tiny()
    for table in shared["model"]["tables"]:
        del table["pooling_factor"]
        table["features"] = [feature]
    assert [table.features[0].name for table in parse_spec(raw(shared)).problem.tables] == ["f", "f"]
    shared["model"]["tables"][0]["features"] = [feature, feature]
    with pytest.raises(InvalidProblem, match="/model/tables/0/features/1/name"):
        parse_spec(raw(shared))


def test_all_broken_rules_are_listed_together() -> None:
    assert set(pointers(model__tables__0__embedding_dim=6, cost_model="guess", constraints__apart=[["a", "z"]])) == {
        "/model/tables/0/embedding_dim",
        "/cost_model",
        "/constraints/apart/0/1",
    }


class SixteenColumns:
    """A runtime of its own mind: rows of a multiple of 16 columns, and no sequences."""

    name = "sixteen"

    def scheme_issue(self, table: Table, _scheme: Scheme) -> str | None:
        if table.pooling == "none":
            return "it has no sequences"
        return "rows come in 16 columns" if table.embedding_dim % 16 else None


def test_the_runtime_is_asked_which_tables_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.specs.to_domain.tables.RUNTIMES", {"torchrec": SixteenColumns()})
    with pytest.raises(InvalidProblem) as caught:
        request_of(model__tables__1__pooling="none")  # table a has 8 columns, table b 16
    width, sequence = caught.value.issues
    assert (width.pointer, width.hint) == ("/model/tables/0/embedding_dim", "pad the table to 16 columns")
    assert "rows come in 16 columns" in width.message
    assert sequence.pointer == "/model/tables/1"
    assert "it has no sequences" in sequence.message


def test_a_runtime_that_does_not_train_a_table_says_so_before_a_solve() -> None:
    """Optimizers and types are asked about, too; row-wise AdaGrad is the default."""
    with pytest.raises(InvalidProblem) as caught:
        request_of(runtime="hugectr", model__tables__1__optimizer="sgd", model__tables__1__data_type="int8")
    weights, adagrad = caught.value.issues
    assert adagrad.pointer == "/model/tables/0"
    assert "trains with sgd or adagrad, not with rowwise_adagrad" in adagrad.message
    assert weights.pointer == "/model/tables/1/data_type"
    assert (weights.message, weights.hint[:8]) == ("the runtime hugectr does not hold int8 weights", "use fp32")
    trained = {f"model__tables__{index}__optimizer": "adagrad" for index in (0, 1)}
    assert request_of(runtime="hugectr", **trained).problem.runtime == "hugectr"


def test_a_runtime_that_does_not_run_on_the_devices_says_so() -> None:
    one = {f"model__tables__{index}__optimizer": "sgd" for index in (0, 1)} | {"hardware__ranks_per_host": 1}
    for profile in ("cpu-2s-genoa-200g", "tpu-v5p"):
        assert pointers(runtime="hugectr", hardware__profile=profile, **one) == ["/runtime"]
        assert request_of(runtime="generic", hardware__profile=profile, **one).problem.runtime == "generic"
    assert request_of(runtime="hugectr", hardware__profile="dgx-a100-80g", **one).problem.runtime == "hugectr"


def test_torcheasyrec_takes_tables_that_its_config_can_name_and_type() -> None:
    with pytest.raises(InvalidProblem) as caught:
        request_of(runtime="torcheasyrec", model__tables__0__name="a.b", model__tables__1__data_type="bf16")
    dotted, typed = caught.value.issues
    assert (dotted.pointer, typed.pointer) == ("/model/tables/0/name", "/model/tables/1/data_type")
    assert "the name has a dot" in dotted.message
    assert "does not hold bf16 weights" in typed.message
    assert "use fp32 or fp16" in typed.hint
    assert request_of(runtime="torcheasyrec").problem.runtime == "torcheasyrec"


def test_what_no_runtime_leaves_of_the_users_constraints_is_for_the_solve_to_explain() -> None:
    """A table that runs but for its constraints is no fault of the spec: the solve names the constraint to drop."""
    allowed = {"model__tables__0__constraints": {"data_types": ["fp32", "bf16"]}}
    table = request_of(runtime="torcheasyrec", **allowed).problem.tables[0]
    assert table.constraints.data_types == ("bf16", "fp32")
    narrow = {"model__tables__1__embedding_dim": 6, **allowed}
    assert pointers(runtime="torcheasyrec", **narrow) == ["/model/tables/1/embedding_dim"]


def test_sparsecores_are_a_power_of_two_and_all_have_rows() -> None:
    given = {f"model__tables__{index}__optimizer": "sgd" for index in (0, 1)} | {
        "hardware__profile": "tpu-v5p",
        "hardware__overrides": {"intra_host_bytes_per_second": 4e11, "inter_host_bytes_per_second": 6e9},
        "runtime": "sparsecore",
    }
    assert request_of(**given, hardware__ranks_per_host=4).problem.runtime == "sparsecore"
    for ranks in (1, 3):
        assert pointers(**given, hardware__ranks_per_host=ranks) == ["/hardware/num_hosts"]
    assert pointers(**(given | {"hardware__profile": "dgx-a100-80g"})) == ["/runtime"]
    with pytest.raises(InvalidProblem) as caught:
        request_of(**given, hardware__ranks_per_host=4, model__tables__1__num_embeddings=9)
    (issue,) = caught.value.issues
    assert issue.pointer == "/model/tables/1/num_embeddings"
    assert "leave some of 4 chips without any" in issue.message
    assert "plan for 12 rows" in issue.hint
    with pytest.raises(InvalidProblem) as caught:
        request_of(**given, hardware__ranks_per_host=4, model__tables__1__embedding_dim=20)
    assert caught.value.issues[0].hint == "pad the table to 24 columns"


def test_padding_is_advised_with_the_number() -> None:
    with pytest.raises(InvalidProblem) as caught:
        request_of(model__tables__0__embedding_dim=129)
    assert caught.value.issues[0].hint == "pad the table to 132 columns"


def test_a_table_larger_than_the_cluster_is_refused_with_the_numbers() -> None:
    # 2 ranks x 80 GB = 160 GB; 1e9 rows x 128 x 4 B = 512 GB: 6.4 ranks' worth, so 7.
    with pytest.raises(InvalidProblem) as caught:
        request_of(
            model__tables__0__num_embeddings=10**9,
            model__tables__0__embedding_dim=128,
            model__tables__0__constraints={"compute_kernels": ["fused"]},
        )
    (issue,) = caught.value.issues
    assert (issue.code, issue.pointer) == ("table-too-large", "/model/tables/0")
    assert "512.0 GB" in issue.message
    assert "160.0 GB of hbm" in issue.message
    assert "these weights alone fill 7;" in issue.hint
    assert "allow kernels of host memory (fused_uvm, fused_uvm_caching)" in issue.hint


def test_a_table_counts_the_memory_that_its_kernels_may_use() -> None:
    """512e9 B in fp32: two ranks of 80e9 B of HBM and 150e9 B of DDR have 460e9 B in all, and it takes half in fp16."""
    large: dict[str, object] = {
        "model__tables__0__num_embeddings": 10**9,
        "model__tables__0__embedding_dim": 128,
        "hardware__overrides": {"ddr_bytes": 150e9},
    }
    with pytest.raises(InvalidProblem) as caught:
        request_of(**large)
    (issue,) = caught.value.issues
    assert issue.code == "table-too-large"
    assert "460.0 GB of hbm and ddr" in issue.message
    request_of(**large, model__tables__0__constraints={"data_types": ["fp32", "fp16"]})


def test_tables_that_are_too_much_together_are_no_error() -> None:
    # 3e8 rows x 8 x 4 B + 4 B of state = 10.8e9 bytes each; two of them in 2 x 8e9 x 0.85 = 13.6e9.
    request = request_of(
        model__tables__0__num_embeddings=300_000_000,
        model__tables__1__num_embeddings=300_000_000,
        model__tables__1__embedding_dim=8,
        hardware__overrides={"hbm_bytes": 8e9},
    )
    assert request.problem.world_size == 2


def test_choices_of_storage_are_read_once_each_and_in_order() -> None:
    wanted = {
        "compute_kernels": ["key_value", "fused_uvm_caching"],
        "cache_load_factors": [0.5, 0.1, 0.5],
        "data_types": ["fp32", "fp16"],
    }
    found = request_of(model__tables__0__constraints=wanted).problem.tables[0].constraints
    assert found.compute_kernels == {Kernel.KEY_VALUE, Kernel.FUSED_UVM_CACHING}
    assert found.cache_load_factors == (0.1, 0.5)
    assert found.data_types == ("fp16", "fp32")


def test_other_kernels_next_to_a_planned_one_are_allowed() -> None:
    constraints = request_of(model__tables__0__constraints={"compute_kernels": ["fused_uvm", "fused"]})
    assert constraints.problem.tables[0].constraints.compute_kernels == {Kernel.FUSED, Kernel.FUSED_UVM}


def test_tables_that_are_never_looked_up_are_legal_and_named() -> None:
    request = request_of(model__tables__1__pooling_factor=0)
    assert request.problem.tables[1].ids_per_sample == 0
    (warning,) = request.warnings
    assert (warning.severity, warning.pointer) == ("warning", "/model/tables")
    assert '1 of 2 tables is never looked up and still takes memory: "b"' in warning.message


def test_a_plan_from_anywhere_becomes_a_placement() -> None:
    shard = {"rank": 1, "row_offset": 0, "num_rows": 1000, "column_offset": 0, "num_columns": 8, "tier": "hbm"}
    table = {"name": "a", "sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard]}
    plan = {"world_size": 2, "ranks_per_host": 2, "tables": [table]}
    given = parse_plan(raw(plan))
    placement = given.placement
    assert (given.stated_digest, given.actual_digest, given.stated_spec_digest) == (None, None, None)
    assert placement.tables[0].sharding_type is Scheme.TABLE_WISE
    assert placement.tables[0].shards[0].rank == 1
    request, same = parse_evaluation(raw({"spec": TINY, "plan": plan}))
    assert same == given
    assert request.name == "tiny"
    with pytest.raises(InvalidProblem, match="/tables/0/shards/0/rank"):
        parse_plan(raw({**plan, "tables": [{**table, "shards": [{**shard, "rank": -1}]}]}))


def test_a_plan_in_the_place_of_a_spec_is_reported_as_one() -> None:
    plan = {"schema_version": 1, "name": "n", "plan_digest": "sha256:0", "world_size": 2, "tables": []}
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(plan))
    (issue,) = caught.value.issues
    assert (issue.code, issue.pointer, issue.message) == ("not-a-spec", "", "this is a plan, and a spec is asked for")
    with pytest.raises(InvalidProblem) as caught:
        parse_evaluation(raw({"spec": plan, "plan": plan}))
    assert [(issue.code, issue.pointer) for issue in caught.value.issues] == [("not-a-spec", "/spec")]
    assert "/plan_digest" in pointers(plan_digest="sha256:0")  # a spec with a field too many is a spec


def test_a_spec_in_the_place_of_a_plan_is_reported_as_one() -> None:
    plan = {"schema_version": 1, "name": "n", "plan_digest": "sha256:0", "world_size": 2, "tables": []}
    for body, reported in (
        ({"spec": TINY, "plan": TINY}, [("not-a-plan", "/plan")]),
        ({"spec": plan, "plan": TINY}, [("not-a-spec", "/spec"), ("not-a-plan", "/plan")]),  # swapped
    ):
        with pytest.raises(InvalidProblem) as caught:
            parse_evaluation(raw(body))
        assert [(issue.code, issue.pointer) for issue in caught.value.issues] == reported


def test_cross_checks_of_an_evaluation_point_below_spec() -> None:
    plan = {"world_size": 2, "ranks_per_host": 2, "tables": [{"name": "a"}]}
    body = {"spec": tiny(cost_model="guess"), "plan": plan}
    shard = {"rank": 1, "row_offset": 0, "num_rows": 1000, "column_offset": 0, "num_columns": 8}
    plan["tables"] = [{"name": "a", "sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard]}]
    with pytest.raises(InvalidProblem) as caught:
        parse_evaluation(raw(body))
    assert [issue.pointer for issue in caught.value.issues] == ["/spec/cost_model"]


def test_choices_that_can_only_fail_are_refused_where_they_stand() -> None:
    assert listed(tiny(model__tables__0__constraints={"data_types": ["int8", "int4"]})) == [
        ("/model/tables/0/constraints/data_types", "invalid-value")
    ]
    request_of(model__tables__0__constraints={"data_types": ["int8", "fp16"]})
    split = {"model__tables__0__constraints": {"hot_row_fractions": [0.1]}}
    assert listed(tiny(**split)) == [("/model/tables/0/constraints/hot_row_fractions", "invalid-value")]
    request_of(runtime="generic", **split)
    histogram = {"model__tables__0__access": {"reuse_histogram": [10**12, *[0] * 16]}}
    assert listed(tiny(**histogram)) == [("/model/tables/0/access/reuse_histogram", "invalid-value")]
