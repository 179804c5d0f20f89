"""Fetching, exporting and judging plans."""

import copy
import gzip

import pytest
import zstandard

from api.http.routes.plans import MAX_CERTIFIED_TABLES
from api.schemas.certificate import CertificateDocument
from api.schemas.explanation import ExplanationDocument
from api.schemas.plan import MAX_SHARDS_OF_TABLE
from api.store.database import TenantStore
from planner.domain.formats.canonical_json import canonical_bytes, plan_digest
from planner.output.certificate import check as check_certificate
from planner.output.exporters.registry import FORMATS
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny

NOTHING = "sha256:" + "0" * 64


@pytest.fixture(scope="module")
def digest(live: Live) -> str:
    return live.solve(TINY)["result"]["plan_digest"]


def test_a_plan_is_canonical_bytes_under_its_digest(live: Live, digest: str) -> None:
    answer = live.get(f"/v1/plans/{digest}", headers={"Accept-Encoding": "identity"})
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-plan-digest"] == digest
    plan = answer.json()
    assert answer.content == canonical_bytes(plan)
    assert plan["plan_digest"] == plan_digest(plan) == digest
    assert plan["name"] == "tiny"
    assert plan["provenance"]["evidence"]["model.pipeline"]["evidence"] == "default"


def test_encodings_have_their_own_etags_and_304(live: Live, digest: str) -> None:
    url, etags = f"/v1/plans/{digest}", {}
    plain = live.get(url, headers={"Accept-Encoding": "identity"}).content
    for encoding in ("identity", "gzip", "zstd"):
        answer = live.get(url, headers={"Accept-Encoding": encoding})
        assert answer.headers.get("content-encoding", "identity") == encoding
        assert answer.content == plain  # httpx decodes
        assert "Accept-Encoding" in answer.headers["vary"]
        etags[encoding] = answer.headers["etag"]
        again = live.get(url, headers={"Accept-Encoding": encoding, "If-None-Match": etags[encoding]})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etags[encoding])
    assert len(set(etags.values())) == 3
    other = live.get(url, headers={"Accept-Encoding": "gzip", "If-None-Match": etags["zstd"]})
    assert other.status_code == 200


def test_compressed_bytes_are_what_they_say(live: Live, digest: str) -> None:
    served = live.app.state.services.plans.get(digest)
    assert gzip.decompress(served.by_encoding["gzip"].body) == served.canonical
    assert zstandard.decompress(served.by_encoding["zstd"].body) == served.canonical


def test_head_has_the_headers_and_no_body(live: Live, digest: str) -> None:
    got = live.get(f"/v1/plans/{digest}", headers={"Accept-Encoding": "identity"})
    head = live.request("HEAD", f"/v1/plans/{digest}", headers={"Accept-Encoding": "identity"})
    assert head.status_code == 200
    assert head.content == b""
    for name in ("etag", "content-length", "x-plan-digest"):
        assert head.headers[name] == got.headers[name]


def test_unknown_plans_and_wrong_digests_are_problems(live: Live) -> None:
    assert_problem(live.get(f"/v1/plans/{NOTHING}"), 404, "not-found")
    assert_problem(live.get("/v1/plans/latest"), 400, "invalid-parameter")
    assert_problem(live.get(f"/v1/plans/{NOTHING}/exports/json"), 404, "not-found")


def test_every_format_is_known_here_and_to_the_command_line(live: Live, digest: str) -> None:
    for name in FORMATS:
        answer = live.get(f"/v1/plans/{digest}/exports/{name}?module_path=model.ebc")
        assert answer.status_code == 200 or "export-refused" in answer.text
    reported = assert_problem(live.get(f"/v1/plans/{digest}/exports/onnx"), 404, "not-found")["detail"]
    assert all(name in reported for name in FORMATS)


def test_exports(live: Live, digest: str) -> None:
    plan = live.get(f"/v1/plans/{digest}").json()
    assert live.get(f"/v1/plans/{digest}/exports/json").json() == plan
    export = live.get(f"/v1/plans/{digest}/exports/torchrec?module_path=model.ebc&device=cpu").json()
    assert export["plan_digest"] == digest
    assert set(export["plan"]) == {"model.ebc"}
    assert set(export["plan"]["model.ebc"]) == {"a", "b"}
    assert_problem(live.get(f"/v1/plans/{digest}/exports/torchrec"), 422, "export-refused")
    assert_problem(live.get(f"/v1/plans/{digest}/exports/onnx"), 404, "not-found")
    assert_problem(live.get(f"/v1/plans/{digest}/exports/torchrec?device=toaster"), 400, "invalid-parameter")
    assert_problem(live.get(f"/v1/plans/{digest}/exports/torchrec?module_path=../x"), 400, "invalid-parameter")


#: What makes plans of the tiny spec ones for SparseCores.
SPARSECORE = {f"model__tables__{index}__optimizer": "adagrad" for index in (0, 1)} | {
    "hardware__overrides": {"intra_host_bytes_per_second": 4e11},
    **{f"model__tables__{index}__constraints": {"sharding_types": ["row_wise"]} for index in (0, 1)},
}


def test_exports_for_hugectr(live: Live) -> None:
    """What the runtime hugectr plans is exported; what it cannot hold is refused with the table and the reason."""
    trained = {"model__tables__0__optimizer": "sgd", "model__tables__1__optimizer": "adagrad"}
    plan = live.solve(tiny(runtime="hugectr", **trained))["result"]["plan_digest"]
    export = live.get(f"/v1/plans/{plan}/exports/hugectr").json()
    assert (export["plan_digest"], export["num_gpus"], export["rows"]) == (plan, 2, "modulo")
    assert {name for held in export["shard_matrix"] for name in held} == {"a", "b"}
    half = live.solve(tiny(model__tables__0__data_type="fp16"))["result"]["plan_digest"]
    reported = assert_problem(live.get(f"/v1/plans/{half}/exports/hugectr"), 422, "export-refused")["detail"]
    assert 'Table "a": its weights are fp16' in reported
    assert 'Table "b"' not in reported


def test_exports_for_distributed_embeddings(live: Live) -> None:
    """The same of its runtime; a rank that nothing is left for is told, too."""
    trained = {"model__tables__0__optimizer": "sgd", "model__tables__1__optimizer": "adagrad"}
    apart = {
        f"model__tables__{rank}__constraints": {"sharding_types": ["table_wise"], "ranks": [rank]} for rank in (0, 1)
    }
    plan = live.solve(tiny(runtime="distributed_embeddings", **trained, **apart))["result"]["plan_digest"]
    export = live.get(f"/v1/plans/{plan}/exports/distributed_embeddings").json()
    assert (export["plan_digest"], export["num_ranks"]) == (plan, 2)
    assert export["strategy"] == {"table_groups": [[], [0, 1], []], "column_slices": [1, 1], "table_ids": [[0], [1]]}
    apart["model__tables__1__constraints"]["ranks"] = [0]
    together = live.solve(tiny(runtime="distributed_embeddings", **trained, **apart))["result"]["plan_digest"]
    refused = live.get(f"/v1/plans/{together}/exports/distributed_embeddings")
    assert "there is none on rank 1" in assert_problem(refused, 422, "export-refused")["detail"]


def test_exports_for_torcheasyrec(live: Live) -> None:
    """What the runtime torcheasyrec plans is exported; what its config cannot ask for is refused by table."""
    plan = live.solve(tiny(runtime="torcheasyrec"))["result"]["plan_digest"]
    export = live.get(f"/v1/plans/{plan}/exports/torcheasyrec").json()
    assert (export["plan_digest"], export["nnodes"], export["nproc_per_node"]) == (plan, 1, 2)
    assert {one["name"] for one in export["tables"]} == {"a", "b"}
    half = live.solve(tiny(model__tables__0__data_type="bf16", runtime="generic"))["result"]["plan_digest"]
    reported = assert_problem(live.get(f"/v1/plans/{half}/exports/torcheasyrec"), 422, "export-refused")["detail"]
    assert 'Table "a": its weights are bf16' in reported


def test_exports_for_sparsecores_know_the_spec(live: Live) -> None:
    """Limits come from the accesses of the stored spec; other hardware needs its SparseCores."""
    zipf = {f"model__tables__{index}__access": {"zipf_alpha": 1.05} for index in (0, 1)}
    spec = tiny(runtime="sparsecore", hardware__profile="tpu-v5p", **SPARSECORE, **zipf)
    plan = live.solve(spec)["result"]["plan_digest"]
    export = live.get(f"/v1/plans/{plan}/exports/sparsecore").json()
    assert (export["plan_digest"], export["num_sparsecores"], export["rows"]) == (plan, 8, "modulo")
    assert {name for stack in export["stacks"] for name in stack["tables"]} == {"a", "b"}
    assert all(stack["max_ids_per_partition"] > 0 for stack in export["stacks"])
    assert_problem(live.get(f"/v1/plans/{plan}/exports/sparsecore?sparsecores_per_chip=2"), 422, "export-refused")
    assert_problem(live.get(f"/v1/plans/{plan}/exports/sparsecore?sparsecores_per_chip=0"), 400, "invalid-parameter")
    gpus = live.solve(tiny(runtime="generic", **SPARSECORE))["result"]["plan_digest"]
    reported = assert_problem(live.get(f"/v1/plans/{gpus}/exports/sparsecore"), 422, "export-refused")["detail"]
    assert "family gpu; sparsecore runs on tpu" in reported
    other = live.solve(tiny(runtime="generic", hardware__profile="tpu-v4", **SPARSECORE))["result"]["plan_digest"]
    reported = assert_problem(live.get(f"/v1/plans/{other}/exports/sparsecore"), 422, "export-refused")["detail"]
    assert "give sparsecores_per_chip" in reported
    assert live.get(f"/v1/plans/{other}/exports/sparsecore?sparsecores_per_chip=4").json()["num_sparsecores"] == 8


def test_a_stored_plan_is_explained_by_its_spec(live: Live, digest: str) -> None:
    plan = live.get(f"/v1/plans/{digest}").json()
    answer = live.get(f"/v1/plans/{digest}/explanation")
    assert answer.status_code == 200
    assert answer.headers["x-plan-digest"] == digest
    reported = answer.json()
    assert ExplanationDocument.model_validate(reported).plan_digest == digest
    assert reported["spec_digest"] == plan["spec_digest"]
    assert reported["cost_model"] == plan["provenance"]["cost_model"]
    assert reported["objective"]["seconds"] == pytest.approx(plan["objective"]["seconds"])
    assert reported["num_tables"] == len(plan["tables"]) == len(reported["tables"])
    assert {table["name"] for table in reported["tables"]} == {"a", "b"}
    (heaviest,) = live.get(f"/v1/plans/{digest}/explanation?tables=1").json()["tables"]
    assert heaviest == reported["tables"][0]


def test_explanations_that_are_not_there(live: Live, digest: str) -> None:
    assert_problem(live.get(f"/v1/plans/{NOTHING}/explanation"), 404, "not-found")
    assert_problem(live.get(f"/v1/plans/{digest}/explanation?tables=-1"), 400, "invalid-parameter")
    assert_problem(live.get(f"/v1/plans/{digest}/explanation?tables=101"), 400, "invalid-parameter")
    assert_problem(live.get(f"/v1/plans/{digest}/explanation?table=1"), 400, "invalid-parameter")


def test_a_plan_whose_spec_is_not_stored_is_not_explained(
    live: Live, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TenantStore, "spec_of_problem", lambda _, spec_digest: None)
    reported = assert_problem(live.get(f"/v1/plans/{digest}/explanation"), 404, "not-found")
    assert "spec" in reported["detail"]


def test_a_plan_is_explained_by_a_spec_of_the_same_problem(live: Live, digest: str) -> None:
    """The spec is found by its digest, whatever other specs there are."""
    live.solve(tiny(model__batch_size_per_rank=1024))
    seconds = live.get(f"/v1/plans/{digest}").json()["objective"]["seconds"]
    reported = live.get(f"/v1/plans/{digest}/explanation").json()
    assert reported["objective"]["seconds"] == pytest.approx(seconds)


def test_the_services_own_plan_is_valid_and_scores_the_same(live: Live, digest: str) -> None:
    plan = live.get(f"/v1/plans/{digest}").json()
    rated = live.post("/v1/plans:evaluate", {"spec": TINY, "plan": plan}).json()
    assert rated["valid"] is True
    assert rated["violations"] == []
    assert rated["score"]["ranks"] == plan["ranks"]
    assert rated["score"]["phases"] == plan["phases"]
    assert rated["score"]["objective_seconds"] == plan["objective"]["seconds"]
    assert rated["score"]["cost_model"] == plan["provenance"]["cost_model"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("tables", 0, "shards", 0, "num_rows"), 1),  # rows left out
        (("tables", 0, "shards", 0, "row_offset"), 5),  # beyond the table
        (("tables", 0, "shards", 0, "rank"), 7),  # no such rank
        (("tables", 0, "name"), "c"),  # no such table
        (("world_size",), 4),  # another cluster
        (("tables", 0, "shards", 0, "num_columns"), 0),  # an empty shard
    ],
)
def test_plans_that_are_wrong_are_reported_so(live: Live, digest: str, path: tuple[object, ...], value: object) -> None:
    plan = copy.deepcopy(live.get(f"/v1/plans/{digest}").json())
    place = plan
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    answer = live.post("/v1/plans:evaluate", {"spec": TINY, "plan": plan})
    assert answer.status_code == 200, answer.text
    rated = answer.json()
    assert rated["valid"] is False
    assert rated["num_violations"] >= 1
    assert rated["violations"][0]["pointer"].startswith("/plan")


def test_an_evaluation_that_is_no_evaluation_is_a_problem(live: Live) -> None:
    problem = assert_problem(live.post("/v1/plans:evaluate", {"spec": TINY}), 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/plan"


def test_a_plan_with_rows_where_its_kernel_does_not_keep_them_is_rated(live: Live, digest: str) -> None:
    plan = live.get(f"/v1/plans/{digest}").json()
    for table in plan["tables"]:
        table["compute_kernel"] = "fused_uvm"
    answer = live.post("/v1/plans:evaluate", {"spec": TINY | {"cost_model": "torchrec"}, "plan": plan})
    assert answer.status_code == 200, answer.text
    assert answer.json()["valid"] is False
    assert "tier" in {violation["code"] for violation in answer.json()["violations"]}


def test_a_table_of_more_shards_than_any_scheme_has_is_refused(live: Live, digest: str) -> None:
    plan = live.get(f"/v1/plans/{digest}").json()
    shard = plan["tables"][0]["shards"][0]
    plan["tables"][0]["shards"] = [shard] * (MAX_SHARDS_OF_TABLE + 1)
    problem = assert_problem(live.post("/v1/plans:evaluate", {"spec": TINY, "plan": plan}), 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/plan/tables/0/shards"
    plan["tables"][0]["shards"] = [shard] * MAX_SHARDS_OF_TABLE
    assert live.post("/v1/plans:evaluate", {"spec": TINY, "plan": plan}).json()["valid"] is False


def test_a_plan_is_rated_under_another_cost_model(live: Live, digest: str) -> None:
    plan = live.get(f"/v1/plans/{digest}").json()
    body = {"spec": TINY, "plan": plan}
    scores = [live.post(f"/v1/plans:evaluate{query}", body).json()["score"] for query in ("", "?cost_model=torchrec")]
    assert [score["cost_model"].partition("@")[0] for score in scores] == ["roofline", "torchrec"]
    assert_problem(live.post("/v1/plans:evaluate?cost_model=crystal-ball", body), 400, "invalid-parameter")
    assert_problem(live.post("/v1/plans:evaluate?cost=torchrec", body), 400, "invalid-parameter")


def test_a_plan_is_certified(live: Live, digest: str) -> None:
    """What comes back stands alone: the checker takes it as it is, and knows the plan."""
    plan = live.get(f"/v1/plans/{digest}").json()
    answer = live.post("/v1/plans:certify", {"spec": TINY, "plan": plan})
    assert answer.status_code == 200, answer.text
    certificate = answer.json()
    assert answer.content == canonical_bytes(certificate)
    CertificateDocument.model_validate(certificate)
    assert check_certificate.check(certificate, plan)
    assert certificate["plan_digest"] == digest
    assert certificate["spec_digest"] == plan["spec_digest"]
    assert certificate["claim"]["bound_seconds"] <= plan["objective"]["seconds"]
    other = live.post("/v1/plans:certify?cost_model=torchrec", {"spec": TINY, "plan": plan}).json()
    assert other["cost_model"].startswith("torchrec@")
    assert check_certificate.check(other, plan)


def test_what_cannot_be_certified_is_a_problem(live: Live, digest: str) -> None:
    plan = live.get(f"/v1/plans/{digest}").json()
    broken = copy.deepcopy(plan)
    broken["tables"][0]["shards"][0]["num_rows"] -= 1
    problem = assert_problem(live.post("/v1/plans:certify", {"spec": TINY, "plan": broken}), 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/plan/plan_digest"
    del broken["plan_digest"]
    problem = assert_problem(live.post("/v1/plans:certify", {"spec": TINY, "plan": broken}), 422, "invalid-problem")
    assert problem["errors"][0]["pointer"].startswith("/plan/tables/0")


def test_too_many_tables_are_certified_elsewhere(live: Live) -> None:
    one = {"num_embeddings": 100, "embedding_dim": 8, "pooling_factor": 1.0}
    tables = [{"name": f"t{index}", **one} for index in range(MAX_CERTIFIED_TABLES + 1)]
    spec = tiny(model={**TINY["model"], "tables": tables})
    placed = {
        "sharding_type": "table_wise",
        "compute_kernel": "fused",
        "shards": [{"rank": 0, "row_offset": 0, "num_rows": 100, "column_offset": 0, "num_columns": 8}],
    }
    plan = {"world_size": 2, "ranks_per_host": 2, "tables": [{"name": table["name"], **placed} for table in tables]}
    problem = assert_problem(live.post("/v1/plans:certify", {"spec": spec, "plan": plan}), 422, "unsupported")
    assert problem["errors"][0]["pointer"] == "/spec/model/tables"
    assert "shardplan certify" in problem["errors"][0]["hint"]
