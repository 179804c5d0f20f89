"""The whole loop with the client that openapi-python-client generates: checked by mypy --strict, then run by a test.

``python loop.py URL`` prints what each step came to, as one JSON document.
"""

import json
import sys
from typing import TypeVar

from shardplan_api import AuthenticatedClient
from shardplan_api.api.channels import get_channel, get_channel_plan, put_channel, rollback_channel
from shardplan_api.api.plans import get_plan
from shardplan_api.api.solves import get_solve, submit_patch, submit_solve, validate_spec
from shardplan_api.models.channel_document import ChannelDocument
from shardplan_api.models.channel_rollback import ChannelRollback
from shardplan_api.models.channel_update import ChannelUpdate
from shardplan_api.models.compact_plan_document import CompactPlanDocument
from shardplan_api.models.get_plan_form_type_0 import GetPlanFormType0
from shardplan_api.models.hardware_spec import HardwareSpec
from shardplan_api.models.model_spec import ModelSpec
from shardplan_api.models.objective_document import ObjectiveDocument
from shardplan_api.models.plan_document import PlanDocument
from shardplan_api.models.plan_slice import PlanSlice
from shardplan_api.models.problem_document import ProblemDocument
from shardplan_api.models.solve_document import SolveDocument
from shardplan_api.models.solve_document_state import SolveDocumentState
from shardplan_api.models.solve_patch import SolvePatch
from shardplan_api.models.solve_patch_patch import SolvePatchPatch
from shardplan_api.models.solver_spec import SolverSpec
from shardplan_api.models.spec_document import SpecDocument
from shardplan_api.models.table_spec import TableSpec
from shardplan_api.models.validation_document import ValidationDocument
from shardplan_api.types import Unset

T = TypeVar("T")
CHANNEL = "ads/generated"


def the(kind: type[T], value: object) -> T:
    """Return a value as what it is, which the type checker does not know where an answer is one of several."""
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value


def spec() -> SpecDocument:
    tables = [
        TableSpec(name="user", num_embeddings=100_000, embedding_dim=64, pooling_factor=1.0),
        TableSpec(name="item", num_embeddings=10_000, embedding_dim=32, pooling_factor=20.0),
    ]
    return SpecDocument(
        name="generated",
        model=ModelSpec(tables=tables, batch_size_per_rank=64),
        hardware=HardwareSpec(profile="dgx-h100-80g", num_hosts=1, ranks_per_host=2),
        solver=SolverSpec(partitioner="greedy", time_limit_seconds=5.0),
    )


def followed(client: AuthenticatedClient, solve: SolveDocument) -> SolveDocument:
    """Wait until a solve ends."""
    while solve.state in (SolveDocumentState.QUEUED, SolveDocumentState.RUNNING):
        solve = the(SolveDocument, get_solve.sync(solve.id, client=client, wait=10.0))
    return solve


def digest_of(solve: SolveDocument) -> str:
    """Return the digest of the plan of a solve, whose objective is typed."""
    if solve.result is None or isinstance(solve.result, Unset):
        raise TypeError("the solve has no result")
    objective = the(ObjectiveDocument, solve.result.objective)
    if not objective.seconds >= objective.lower_bound_seconds > 0:
        raise ValueError("the bound is above the plan")
    return the(str, solve.result.plan_digest)


def loop(url: str) -> dict[str, object]:
    with AuthenticatedClient(url, token="not-asked-for", raise_on_unexpected_status=True) as client:
        found: dict[str, object] = {}
        validation = the(ValidationDocument, validate_spec.sync(client=client, body=spec()))
        found["num_tables"] = validation.totals.num_tables

        first = followed(client, the(SolveDocument, submit_solve.sync(client=client, body=spec())))
        patch = SolvePatchPatch.from_dict({"hardware": {"ranks_per_host": 4}})
        body = SolvePatch(solve=first.id, patch=patch)
        second = followed(client, the(SolveDocument, submit_patch.sync(client=client, body=body)))
        digests = [digest_of(first), digest_of(second)]
        plan = the(PlanDocument, get_plan.sync(digests[0], client=client))
        found["tables"] = [table.name for table in plan.tables]
        compact = get_plan.sync(digests[0], client=client, form=GetPlanFormType0.COMPACT)
        found["compact_form"] = the(CompactPlanDocument, compact).form
        found["slice_rank"] = the(PlanSlice, get_plan.sync(digests[0], client=client, rank=1)).rank

        update = ChannelUpdate(plan_digest=digests[0])
        published = put_channel.sync_detailed(CHANNEL, client=client, body=update, if_none_match="*")
        found["published"] = published.status_code
        update = ChannelUpdate(plan_digest=digests[1])
        etag = published.headers["ETag"]
        promoted = put_channel.sync_detailed(CHANNEL, client=client, body=update, if_match=etag)
        found["promoted"] = the(ChannelDocument, promoted.parsed).plan_digest == digests[1]
        late = put_channel.sync(CHANNEL, client=client, body=update, if_match=etag)
        found["late"] = the(ProblemDocument, late).code

        fetched = get_channel_plan.sync_detailed(CHANNEL, client=client)
        found["world_size"] = the(PlanDocument, fetched.parsed).world_size
        again = get_channel_plan.sync_detailed(CHANNEL, client=client, if_none_match=fetched.headers["ETag"])
        found["again"] = [again.status_code, again.parsed]
        stored = get_plan.sync_detailed(digests[1], client=client, if_none_match="*")
        found["stored"] = stored.status_code

        current = get_channel.sync_detailed(CHANNEL, client=client).headers["ETag"]
        back = rollback_channel.sync(CHANNEL, client=client, body=ChannelRollback(), if_match=current)
        found["back"] = the(ChannelDocument, back).plan_digest == digests[0]

        wrong = spec()
        wrong.model.tables[1].num_embeddings = 0
        problem = the(ProblemDocument, validate_spec.sync(client=client, body=wrong))
        issues = the(list, problem.errors)
        found["problem"] = [problem.status, problem.code, [issue.pointer for issue in issues]]
        missing = the(ProblemDocument, get_plan.sync("sha256:" + "0" * 64, client=client))
        found["missing"] = missing.code
        return found


if __name__ == "__main__":
    print(json.dumps(loop(sys.argv[1])))
