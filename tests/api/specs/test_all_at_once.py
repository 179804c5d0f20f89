"""All that is wrong with a spec is in one answer, and nothing that only follows from a mistake."""

import itertools

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_evaluation, parse_spec
from planner.errors import InvalidProblem
from tests.support.service.broken_specs import MISSING, SOUND, broken
from tests.support.service.specs import raw

#: Mistakes that have nothing to do with each other, and where each is reported.
MISTAKES: dict[str, tuple[dict[str, object], str]] = {
    "an unknown section": ({"extras": {}}, "/extras"),
    "a typo in the solver": ({"solver.sead": 1}, "/solver/sead"),
    "a typo in a table": ({"model.tables.2.optimzer": "sgd"}, "/model/tables/2/optimzer"),
    "a wrong value": ({"solver.time_limit_seconds": "5"}, "/solver/time_limit_seconds"),
    "a wrong value of a table": ({"model.tables.0.num_embeddings": -1}, "/model/tables/0/num_embeddings"),
    "a required field that is missing": (
        {"model.tables.8.embedding_dim": MISSING},
        "/model/tables/8/embedding_dim",
    ),
    "a feature without a rate": (
        {"model.tables.5.features.0.pooling_factor": MISSING},
        "/model/tables/5/features/0/pooling_factor",
    ),
    "a group of one": ({"constraints.apart.0": ["t0"]}, "/constraints/apart/0"),
    "an unknown part": ({"solver.partitioner": "guess"}, "/solver/partitioner"),
    "a name twice": ({"model.tables.4.name": "t2"}, "/model/tables/4/name"),
    "a group of an unknown table": ({"constraints.apart.1.1": "nobody"}, "/constraints/apart/1/1"),
    "ranks that are not there": ({"model.tables.3.constraints.ranks": [0, 9]}, "/model/tables/3/constraints/ranks"),
    "a width that no kernel runs": ({"model.tables.6.embedding_dim": 6}, "/model/tables/6/embedding_dim"),
    "a pin that no cut gives": (
        {"model.tables.1.constraints.pinned.shards.0.num_rows": 999},
        "/model/tables/1/constraints/pinned/shards/0/num_rows",
    ),
    "a table beyond all memory": ({"model.tables.7.num_embeddings": 2**40}, "/model/tables/7"),
    "a previous plan that is not here": (
        {"previous_plan": {"digest": "sha256:" + 64 * "0"}},
        "/previous_plan/digest",
    ),
}
#: Prices cannot be made while it is not known which tables share ranks.
MISSING_NUMBER = (
    {"hardware.overrides.intra_host_bytes_per_second": MISSING},
    "/hardware/overrides/intra_host_bytes_per_second",
)


def pointers(spec: object) -> list[str]:
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(spec))
    assert all(issue.message and issue.hint for issue in caught.value.issues)
    return [issue.pointer for issue in caught.value.issues]


@pytest.mark.parametrize(
    ("where", "items"),
    [
        ("model.tables", [{"name": f"t{n}", "num_embeddings": 9, "embedding_dim": 4} for n in range(20_001)]),
        ("constraints.same_rank", [["t0", "t1"]] * 20_001),
        ("constraints.apart", [["t0", "t1"]] * 20_001),
    ],
)
def test_a_list_that_is_too_long_is_one_of_the_issues(where: str, items: list[object]) -> None:
    at = "/" + where.replace(".", "/")
    assert {at, "/solver/seed"} <= set(pointers(broken({where: items, "solver.seed": "one"})))


def test_the_sound_spec_is_accepted() -> None:
    assert parse_spec(raw(SOUND)).name == "sound"


@pytest.mark.parametrize(("change", "where"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_issue(change: dict[str, object], where: str) -> None:
    assert pointers(broken(change)) == [where]


def test_no_mistake_hides_another_one() -> None:
    for (first, here), (second, there) in itertools.combinations(MISTAKES.values(), 2):
        assert sorted(pointers(broken(first, second))) == sorted([here, there])


def test_all_mistakes_are_in_one_answer() -> None:
    spec = broken(*(change for change, _ in MISTAKES.values()))
    assert sorted(pointers(spec)) == sorted(where for _, where in MISTAKES.values())


def test_what_was_three_answers_is_one() -> None:
    """A typo hid wrong values, these hid a duplicate, and that hid the pin and the hardware number."""
    names = (
        "a typo in the solver",
        "a wrong value of a table",
        "a name twice",
        "a group of an unknown table",
        "a pin that no cut gives",
    )
    chosen = [*(MISTAKES[name] for name in names), MISSING_NUMBER]
    found = pointers(broken(*(change for change, _ in chosen)))
    assert sorted(found) == sorted(where for _, where in chosen)


def test_pointers_of_an_evaluation_lie_below_spec_and_plan() -> None:
    spec = broken(*(change for change, _ in MISTAKES.values()))
    shard = {"rank": 0, "row_offset": 0, "num_rows": 1000, "column_offset": 0, "num_columns": "8"}
    table = {"name": "t0", "sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard]}
    body = {"spec": spec, "plan": {"world_size": 4, "ranks_per_host": 2, "tables": [table]}}
    with pytest.raises(InvalidProblem) as caught:
        parse_evaluation(raw(body))
    assert sorted(issue.pointer for issue in caught.value.issues) == sorted(
        ["/plan/tables/0/shards/0/num_columns", *(f"/spec{where}" for _, where in MISTAKES.values())]
    )


#: Mistakes from which a rule that is checked later would follow, and all that is reported.
MISTAKES_WITH_CONSEQUENCES: dict[str, tuple[dict[str, object], list[str]]] = {
    "a group names a table that is left out": (
        {"model.tables.2.num_embeddings": "x"},
        ["/model/tables/2/num_embeddings"],
    ),
    "a group names a table, and a name cannot be read": (
        {"model.tables.0.name": "<b>", "constraints.apart.1.1": "nobody"},
        ["/model/tables/0/name"],
    ),
    "a group names a table, and a name is missing": (
        {"model.tables.0.name": MISSING, "constraints.apart.1.1": "nobody"},
        ["/model/tables/0/name"],
    ),
    "ranks of a cluster that is not known": (
        {"hardware.num_hosts": "2", "model.tables.3.constraints.ranks": [0, 9]},
        ["/hardware/num_hosts"],
    ),
    "ranks of a cluster whose field is misspelt": (
        {"hardware.num_hosts": MISSING, "hardware.num_host": 8, "model.tables.3.constraints.ranks": [0, 9]},
        ["/hardware/num_host"],
    ),
    "no memory, and its number is wrong": (
        {"hardware.overrides.hbm_bytes": "80", "hardware.overrides.ddr_bytes": MISSING},
        ["/hardware/overrides/hbm_bytes"],
    ),
    "no memory, and its number is misspelt": (
        {
            "hardware.overrides.ddr_bytes": MISSING,
            "hardware.overrides.hbm_bytes": MISSING,
            "hardware.overrides.hbm_byte": 8e10,
        },
        ["/hardware/overrides/hbm_byte"],
    ),
    "no number at all": ({"hardware.overrides": 3}, ["/hardware/overrides"]),
    "requests under an objective that is not known": (
        {"objective": "request_latencies", "serving": {"samples_per_request": 3}},
        ["/objective"],
    ),
    "a number that a cost model needs which is not known": (
        {"cost_model": "guess", **MISSING_NUMBER[0]},
        ["/cost_model"],
    ),
    "a width that a runtime which is not known cannot run": (
        {"runtime": 3, "model.tables.6.embedding_dim": 6},
        ["/runtime"],
    ),
    "a number that a scheme which is not known needs": (
        {
            "model.tables": [{**SOUND["model"]["tables"][0], "constraints": {"sharding_types": ["tabel_wise"]}}],
            "constraints": {},
            **MISSING_NUMBER[0],
        },
        ["/model/tables/0/constraints/sharding_types/0"],
    ),
    "a number that tables of a group do not need": (
        {"constraints.same_rank": [["t6"]], **MISSING_NUMBER[0]},
        ["/constraints/same_rank/0"],
    ),
    "an access whose one field is wrong": (
        {"model.tables.2.access": {"zipf_alpha": "1"}},
        ["/model/tables/2/access/zipf_alpha"],
    ),
    "neither features nor a rate, and features are wrong": (
        {"model.tables.5.features": 3},
        ["/model/tables/5/features"],
    ),
    "neither features nor a rate, and features are misspelt": (
        {"model.tables.5.features": MISSING, "model.tables.5.feature": []},
        ["/model/tables/5/feature"],
    ),
    "settings of checkpoints that are left out": (
        {"checkpoint": {"policy": "full", "full_every": 3}},
        ["/checkpoint/interval_steps"],
    ),
    "a spec without hardware": ({"hardware": MISSING}, ["/hardware"]),
    "hardware without a profile": ({"hardware": {}}, ["/hardware/profile"]),
    "a spec without a model": ({"model": MISSING}, ["/model"]),
    "a model of another form": ({"model": 3}, ["/model"]),
    "tables of another form": ({"model.tables": {}}, ["/model/tables"]),
    "no tables": ({"model.tables": []}, ["/model/tables"]),
    "no table that can be read": (
        {"model.tables": [3, {}]},
        ["/model/tables/0", *(f"/model/tables/1/{name}" for name in ("name", "num_embeddings", "embedding_dim"))],
    ),
}


@pytest.mark.parametrize(
    ("change", "where"), MISTAKES_WITH_CONSEQUENCES.values(), ids=MISTAKES_WITH_CONSEQUENCES.keys()
)
def test_what_follows_from_a_mistake_is_not_reported(change: dict[str, object], where: list[str]) -> None:
    assert pointers(broken(change)) == where


def test_tables_keep_their_numbers_when_others_are_left_out() -> None:
    spec = broken(
        {"model.tables.0": 3, "model.tables.2.num_embeddings": MISSING},
        {"model.tables.3.name": "t2", "model.tables.8.name": "t7", "constraints.apart": []},
    )
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(spec))
    messages = {issue.pointer: issue.message for issue in caught.value.issues}
    assert [*messages] == [
        "/model/tables/0",
        "/model/tables/2/num_embeddings",
        "/model/tables/3/name",
        "/model/tables/8/name",
    ]
    assert messages["/model/tables/3/name"] == 'table "t2" is also table number 2 (counted from 0)'
    assert messages["/model/tables/8/name"] == 'table "t7" is also table number 7 (counted from 0)'


@pytest.mark.parametrize("content", [b"{", b'{"name": "a", "name": "b"}', b'{"name": NaN}', b"[]", b"null"])
def test_what_cannot_be_read_is_one_issue(content: bytes) -> None:
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(content)
    (issue,) = caught.value.issues
    assert issue.pointer == ""


def test_a_list_of_issues_that_is_full_ends_the_reading() -> None:
    """What came after the form of the document could not be shown."""
    spec = broken({f"wrong_{number}": 1 for number in range(60)}, MISTAKES["a name twice"][0])
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(spec))
    error = caught.value
    assert isinstance(error, RejectedDocument)
    assert (len(error.issues), error.num_issues) == (50, 60)
