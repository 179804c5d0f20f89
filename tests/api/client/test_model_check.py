"""A model compared with a plan, a spec and the model of rank 0: every difference, and whether a new plan would help."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from api.client import plan_digest
from api.client.live_table import LiveTable, fingerprint, rank_differences
from api.client.model_check import plan_differences, spec_differences
from api.client.verdicts import ranks_text, refuse, replan, verdict_of
from tests.support.client.jobs import live_table, tiny_model
from tests.support.client.plans import tiny_plan


def rated(plan: dict, model: list[LiveTable], world_size: int = 2, device: str = "cuda") -> list[tuple[str, str]]:
    """Reasons against a plan, each with its verdict."""
    digest = plan_digest(plan)
    planned = plan | {"plan_digest": digest}
    found = plan_differences(planned, model, digest=digest, world_size=world_size, ranks_per_host=2, device=device)
    return [(difference.text, difference.verdict) for difference in found]


def test_a_model_that_is_the_plans() -> None:
    assert rated(tiny_plan(), tiny_model()) == []


def test_the_gravest_verdict_counts() -> None:
    old, wrong = replan("old"), refuse("wrong")
    assert [verdict_of(found) for found in ([], [old], [wrong, old], [old, wrong])] == [
        "go",
        "replan",
        "refuse",
        "refuse",
    ]


def test_ranks_for_people() -> None:
    assert [ranks_text(ranks) for ranks in ([3], [0, 1], [0, 1, 2], [0, 2, 3])] == [
        "rank 3",
        "ranks 0, 1",
        "ranks 0..2",
        "ranks 0, 2, 3",
    ]


def test_a_plan_of_an_earlier_model_or_cluster_is_out_of_date() -> None:
    model = [live_table("whole", num_embeddings=7), live_table("new")]
    assert rated(tiny_plan(), model, world_size=4) == [
        ("the plan is for a world size of 2, the job has 4", "replan"),
        ('table "new" of module "sparse" is not in the plan', "replan"),
        ('table "grid" of the plan is not in the model', "replan"),
        ('table "whole": rows is 6 in the plan, 7 in the model', "replan"),
    ]


def test_a_changed_pooling_is_out_of_date_and_not_wrong() -> None:
    plan = tiny_plan()
    plan["tables"][1]["pooling"] = "sum"
    averaged = [live_table("whole"), live_table("grid", num_embeddings=5, pooling="mean")]
    assert rated(plan, averaged) == [('table "grid": pooling is sum in the plan, mean in the model', "replan")]
    plan["tables"][1]["pooling"] = "mean"
    assert rated(plan, averaged) == [('table "grid": MEAN pooling as grid_shard adds means of partial bags', "refuse")]


def test_shards_that_would_train_wrongly_are_refused() -> None:
    plan = tiny_plan()
    for shard, (offset, rows) in zip(plan["tables"][1]["shards"], [(0, 2), (2, 3)] * 2, strict=True):
        shard.update(row_offset=offset, num_rows=rows)  # 5 rows as 2 and 3, where TorchRec counts on 3 and 2
    ((reason, verdict),) = rated(plan, tiny_model())
    assert "row pieces must be blocks of 3 rows" in reason
    assert verdict == "refuse"


def test_rows_that_come_back_one_by_one_have_fewer_schemes_and_kernels() -> None:
    model = [live_table("whole", pooling="none"), live_table("grid", num_embeddings=5, pooling="none")]
    reasons = rated(tiny_plan(), model)
    assert reasons == [
        ('table "grid": grid_shard of an EmbeddingCollection is not supported by TorchRec', "refuse"),
    ]
    plan = tiny_plan()
    plan["tables"][0]["compute_kernel"] = "dense"
    model = [live_table("whole", pooling="none"), live_table("grid", num_embeddings=5)]
    assert rated(plan, model) == []
    ((reason, verdict),) = rated(plan, model, device="cpu")
    assert "the dense kernel on cpu adds up the rows" in reason
    assert verdict == "refuse"


def test_shards_are_rated_for_the_cluster_that_the_plan_names() -> None:
    assert rated(tiny_plan(), tiny_model(), world_size=8) == [
        ("the plan is for a world size of 2, the job has 8", "replan")
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: replace(t, num_embeddings=7), "num_embeddings is 7 in its model, 6 in that of rank 0"),
        (lambda t: replace(t, embedding_dim=4), "embedding_dim is 4 in its model, 8 in that of rank 0"),
        (lambda t: replace(t, data_type="fp16"), "data_type is fp16 in its model, fp32 in that of rank 0"),
        (lambda t: replace(t, pooling="mean"), "pooling is mean in its model, sum in that of rank 0"),
        (lambda t: replace(t, is_weighted=True), "is_weighted is True in its model, False in that of rank 0"),
        (lambda t: replace(t, module_path="x"), "module_path is x in its model, sparse in that of rank 0"),
        (lambda t: replace(t, optimizer="sgd"), "optimizer is sgd in its model, None in that of rank 0"),
        (
            lambda t: replace(t, feature_names=("b",)),
            "feature_names is ('b',) in its model, ('whole',) in that of rank 0",
        ),
    ],
)
def test_every_fact_of_a_table_is_compared_between_ranks(
    change: Callable[[LiveTable], LiveTable], message: str
) -> None:
    first = tiny_model()
    mine = [change(first[0]), first[1]]
    assert fingerprint(mine) != fingerprint(first)
    assert rank_differences(mine, first) == [refuse(f'table "whole": {message}')]


def test_tables_of_one_rank_alone_and_their_order() -> None:
    first = tiny_model()
    assert fingerprint(first) == fingerprint(tiny_model())
    assert rank_differences(first[:1], first) == [refuse('table "grid" is in the model of rank 0, and not in its own')]
    assert rank_differences(first, first[:1]) == [refuse('table "grid" is in its model, and not in that of rank 0')]
    assert fingerprint(first[::-1]) != fingerprint(first)
    assert rank_differences(first[::-1], first) == [
        refuse('table "grid" stands in its model where "whole" stands in that of rank 0')
    ]


def spec_with(**facts: object) -> dict[str, object]:
    """A spec of the two tables, in which ``whole`` states these facts."""
    return {"model": {"tables": [{"name": "whole"} | facts, {"name": "grid"}]}}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"features": [{"name": "a"}, {"name": "b"}]}, "feature_names is ('a', 'b') in the spec, ('whole',) in"),
        ({"is_weighted": True}, "is_weighted is True in the spec, False in the model"),
        ({"pooling": "mean"}, "pooling is mean in the spec, sum in the model"),
        ({"num_embeddings": 5}, "num_embeddings is 5 in the spec, 6 in the model"),
        ({"optimizer": "adam"}, "optimizer is adam in the spec, sgd in the model"),
    ],
)
def test_what_a_spec_says_of_a_table_must_still_be_true(facts: dict[str, object], message: str) -> None:
    model = [live_table("whole", optimizer="sgd"), live_table("grid")]
    (found,) = spec_differences(spec_with(**facts), model)
    assert found.verdict == "replan"
    assert found.text.startswith(f'table "whole": {message}')


def test_what_a_spec_leaves_out_is_not_compared() -> None:
    for facts in ({}, {"features": None, "data_type": "fp16"}, {"features": [{"pooling_factor": 2.0}]}):
        assert spec_differences(spec_with(**facts), tiny_model()) == []
    assert spec_differences(spec_with(optimizer="adam"), tiny_model()) == []  # the model has none to compare


def test_tables_of_the_spec_or_of_the_model_alone() -> None:
    found = spec_differences(spec_with(), [live_table("whole"), live_table("new")])
    assert found == [replan('table "new" is not in the spec'), replan('table "grid" of the spec is not in the model')]


def test_a_document_that_is_no_spec() -> None:
    for spec in ({}, {"model": {"tables": [3]}}, {"model": {"tables": [{"name": 3}]}}):
        assert spec_differences(spec, tiny_model()) == [refuse("the spec has no list of named tables in model.tables")]


def test_a_model_that_stashes_other_tables_than_the_plan_is_refused() -> None:
    """Memory is planned for what is stashed: more tables would copy longer, fewer leave no room for activations."""
    plan, model = tiny_plan(), tiny_model()
    name = plan["tables"][0]["name"]
    plan["tables"][0]["stash_weights"] = True
    ((text, verdict),) = rated(plan, model)
    assert verdict == "refuse"
    assert text.startswith(f'table "{name}": stash_weights is True in the plan, False in the model; set')
    stashing = [replace(table, stash_weights=table.name == name) for table in model]
    assert rated(plan, stashing) == []
    ((text, _),) = rated(tiny_plan(), stashing)
    assert "stash_weights is False in the plan, True in the model" in text
