"""The page of the handshake has every reason, in the words of the code, under the verdict of the code."""

import re
from collections.abc import Sequence

import pytest

from api.client import plan_digest
from api.client.check import content_differences, shape_differences
from api.client.job import expected_differences, job_issues, pod_differences
from api.client.live_table import rank_differences
from api.client.model_check import plan_differences, spec_differences
from api.client.replica_groups import group_differences
from api.client.verdicts import Difference
from tests.support.client.jobs import live_table, memory, rank_facts, tiny_model
from tests.support.client.plans import tiny_plan
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "handshake.md"


def surplus() -> Sequence[Difference]:
    """A plan for twice the ranks of a sharding group."""
    plan = tiny_plan() | {"world_size": 4}
    plan["tables"][0]["shards"][0]["rank"] = 2
    return job_issues(plan, [rank_facts(rank) for rank in range(4)], tiny_model())[0]


def wrong_grid() -> Sequence[Difference]:
    """A grid of a MEAN table."""
    model = [live_table("whole"), live_table("grid", num_embeddings=5, pooling="mean")]
    plan = tiny_plan()
    return plan_differences(plan, model, digest=plan_digest(plan), world_size=2, ranks_per_host=2, device="cuda")


def gap() -> Sequence[Difference]:
    """A plan that lost a shard."""
    plan = tiny_plan()
    plan["tables"][1]["shards"].pop()
    return content_differences(plan, digest=plan["plan_digest"], world_size=2, ranks_per_host=2)


def other_cluster() -> Sequence[Difference]:
    """A plan for another cluster."""
    plan = tiny_plan()
    return content_differences(plan, digest=plan["plan_digest"], world_size=4, ranks_per_host=4)


def in_pods(pod_size: int) -> dict[str, object]:
    """The plan for pods of so many ranks."""
    return tiny_plan() | {"pod_size": pod_size}


def other_pods() -> Sequence[Difference]:
    """A plan whose pods are no whole hosts."""
    return content_differences(in_pods(3), digest="", world_size=2, ranks_per_host=2)


def grid_in_pods() -> Sequence[Difference]:
    """A grid over two hosts of a pod, of a table whose optimizer has state for each row."""
    plan, model = tiny_plan() | {"ranks_per_host": 1, "pod_size": 2}, tiny_model()
    model[1] = live_table("grid", num_embeddings=5, optimizer="rowwise_adagrad")
    return plan_differences(plan, model, digest=plan_digest(plan), world_size=2, ranks_per_host=1, device="cuda")


def of_job(**odd: object) -> Sequence[Difference]:
    """A job whose rank 1 is odd."""
    return job_issues(tiny_plan(), [rank_facts(0), rank_facts(1, **odd)], tiny_model())[0]


def of_model(*tables: object) -> Sequence[Difference]:
    """A model with these tables."""
    plan = tiny_plan()
    return plan_differences(plan, tables, digest=plan["plan_digest"], world_size=2, ranks_per_host=2, device="cuda")


def of_groups(size: int, **odd: object) -> Sequence[Difference]:
    """A job of two ranks, and a plan for two groups of as many."""
    groups = {"world_size": 4, "ranks_per_host": 2, "sharding_group_size": 2, "num_groups": 2, "node_group_size": 2}
    facts = [rank_facts(rank, local_world_size=size, **odd) for rank in range(2)]
    return group_differences({**tiny_plan(), "replica_groups": {**groups, "use_inter_host_allreduce": True}}, facts)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (shape_differences({"schema_version": 1}), "the plan has no tables"),
        (content_differences(tiny_plan(), digest="x", world_size=2, ranks_per_host=2), "its content has the digest"),
        (expected_differences("sha256:b", "sha256:a"), "the job expects"),
        (gap(), "are not covered exactly once"),
        (wrong_grid(), "MEAN pooling as grid_shard adds means of partial bags"),
        (
            of_model(live_table("whole"), live_table("grid", num_embeddings=5, pooling="none")),
            "of an EmbeddingCollection is not supported by TorchRec",
        ),
        (other_cluster(), "the plan is for a world size of"),
        (other_cluster(), "ranks per host, the job has"),
        (of_model(live_table("whole")), "of the plan is not in the model"),
        (of_model(*tiny_model(), live_table("new")), "is not in the plan"),
        (of_model(live_table("whole", num_embeddings=7)), "rows is"),
        (spec_differences({"model": {"tables": []}}, tiny_model()), "in the spec"),
        (of_job(memory=memory(1, device_free_bytes=1)), "of device memory"),
        (surplus(), "have no place in sharding groups of"),
        (of_job(sharding_group_size=3), "sharding_group_size"),
        (job_issues(tiny_plan(), [rank_facts(r) for r in range(3)], [])[0], "ranks are not whole sharding groups of"),
        (of_groups(2), "sharding groups of"),
        (of_groups(1), "per host (LOCAL_WORLD_SIZE)"),
        (of_groups(2), "the plan is for use_inter_host_allreduce"),
        (pod_differences(tiny_plan(), 2, 4), "TORCHREC_RESOLVED_POD_SIZE makes TorchRec use groups of"),
        (pod_differences(in_pods(4), 2, None), "set TORCHREC_RESOLVED_POD_SIZE="),
        (pod_differences(in_pods(4), 2, 4, uses_2d=True), "under 2D parallelism TorchRec uses groups of a host"),
        (other_pods(), "are no whole hosts of"),
        (grid_in_pods(), "for a grid over several hosts of a pod"),
        (of_job(machine="other"), "are one host by LOCAL_WORLD_SIZE, but"),
        (of_job(ranks_per_host=1), "the number of ranks per host (LOCAL_WORLD_SIZE) is"),
        (of_job(torchrec="2"), "the version of TorchRec"),
        (rank_differences([live_table("whole", num_embeddings=7)], tiny_model()), "in that of rank 0"),
    ],
)
def test_every_reason_stands_there(found: Sequence[Difference], words: str) -> None:
    verdicts = {difference.verdict for difference in found if words in difference.text}
    assert verdicts, [difference.text for difference in found]
    rows = [re.split(r"(?<!\\) \| ", line) for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    reported = {row[2] for row in rows if len(row) == 4 and words in row[1]}
    assert verdicts <= reported, (words, reported)
