"""The OpenAPI document: complete, and the same as the committed file."""

import json
from pathlib import Path

import pytest

from api.http.app import create_app
from api.http.openapi.document import openapi_text
from cost_models.hardware.profile_fields import FIELDS
from tests.support.service.live import settings_for


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    return json.loads(openapi_text(create_app(settings_for(tmp_path_factory.mktemp("data")))))


def test_the_committed_file_is_up_to_date(document: dict[str, object], root: Path) -> None:
    committed = json.loads((root / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert committed == document, "run: python -m api.http.openapi.write_file docs/openapi.json"


def test_the_routes_of_the_contract_are_there(document: dict[str, object]) -> None:
    operations = {(method, path) for path, item in document["paths"].items() for method in item}
    assert operations == {
        ("get", "/v1/caller"),
        ("post", "/v1/solves"),
        ("post", "/v1/solves:from-patch"),
        ("get", "/v1/solves"),
        ("get", "/v1/solves/{solve_id}"),
        ("get", "/v1/solves/{solve_id}/events"),
        ("delete", "/v1/solves/{solve_id}"),
        ("post", "/v1/solves/{solve_id}:cancel"),
        ("post", "/v1/solves/{solve_id}:retry"),
        ("post", "/v1/studies"),
        ("get", "/v1/studies"),
        ("get", "/v1/studies/{study_id}"),
        ("get", "/v1/studies/{study_id}/points"),
        ("get", "/v1/studies/{study_id}/front"),
        ("post", "/v1/studies/{study_id}:cancel"),
        ("delete", "/v1/studies/{study_id}"),
        ("post", "/v1/specs:validate"),
        ("post", "/v1/plans:evaluate"),
        ("post", "/v1/plans:certify"),
        ("post", "/v1/statistics"),
        ("get", "/v1/statistics"),
        ("get", "/v1/statistics/{digest}"),
        ("get", "/v1/statistics/{digest}/drift"),
        ("get", "/v1/plans/{digest}/drift"),
        ("get", "/v1/channels"),
        ("get", "/v1/plans"),
        ("get", "/v1/plans/{digest}"),
        ("get", "/v1/plans/{digest}/diff/{other}"),
        ("get", "/v1/plans/{digest}/reshard/{other}"),
        ("get", "/v1/plans/{digest}/exports/{format}"),
        ("get", "/v1/plans/{digest}/explanation"),
        ("get", "/v1/plans/{digest}/timeline"),
        ("get", "/v1/channels/{name}"),
        ("put", "/v1/channels/{name}"),
        ("get", "/v1/channels/{name}/plan"),
        ("get", "/v1/channels/{name}/history"),
        ("post", "/v1/channels/{name}:rollback"),
        ("get", "/v1/examples"),
        ("get", "/v1/examples/{example_id}"),
        ("get", "/v1/hardware-profiles"),
        ("get", "/v1/hardware-profiles/{profile_id}"),
        ("get", "/v1/hardware-profiles/{profile_id}/cost-model"),
        ("put", "/v1/hardware-profiles/{profile_id}/cost-model"),
        ("post", "/v1/measurements"),
        ("get", "/v1/measurements"),
        ("get", "/v1/measurements/{digest}"),
        ("get", "/v1/cost-models"),
        ("post", "/v1/cost-models"),
        ("get", "/v1/cost-models/{model_id}"),
        ("post", "/v1/cost-models/{model_id}:cancel"),
        ("get", "/v1/cost-models/{model_id}/document"),
        ("get", "/v1/cost-models/{model_id}/report"),
        ("get", "/v1/cost-models/{model_id}/compare/{other_id}"),
        ("get", "/v1/keys"),
        ("post", "/v1/keys"),
        ("delete", "/v1/keys/{key_id}"),
        ("get", "/v1/audit"),
        ("get", "/v1/webhooks"),
        ("post", "/v1/webhooks"),
        ("get", "/v1/webhooks/{webhook_id}"),
        ("delete", "/v1/webhooks/{webhook_id}"),
        ("post", "/v1/webhooks/{webhook_id}:enable"),
        ("get", "/v1/webhooks/{webhook_id}/deliveries"),
        ("post", "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}:resend"),
        ("get", "/livez"),
        ("get", "/readyz"),
        ("get", "/version"),
        ("get", "/metrics"),
        ("get", "/problems/{code}"),
    }


def test_every_reference_resolves(document: dict[str, object]) -> None:
    schemas = document["components"]["schemas"]

    def references(node: object) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [found for value in node.values() for found in references(value)]
        return [found for value in node for found in references(value)] if isinstance(node, list) else []

    found = references(document)
    assert found
    assert {reference.removeprefix("#/components/schemas/") for reference in found} <= set(schemas)


def test_every_field_of_the_spec_is_described(document: dict[str, object]) -> None:
    schemas = document["components"]["schemas"]
    names = ["SpecDocument", "ModelSpec", "TableSpec", "FeatureSpec", "AccessSpec", "TableConstraintsSpec", "DenseSpec"]
    names += ["HardwareSpec", "HardwareOverrides", "JointConstraintsSpec", "SolverSpec", "PlanDocument"]
    names += ["PinnedSpec", "PinnedShardSpec", "ShardDocument"]
    for name in names:
        assert schemas[name]["additionalProperties"] is False
        for field, schema in schemas[name]["properties"].items():
            target = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
            assert schema.get("description") or target.get("description"), f"{name}.{field}"
    assert set(FIELDS) | {"hbm_bytes_by_rank", "relative_speed_by_rank"} == set(
        schemas["HardwareOverrides"]["properties"]
    )


def test_every_operation_names_its_problems(document: dict[str, object]) -> None:
    for path, item in document["paths"].items():
        for operation in item.values():
            assert operation["summary"]
            assert operation["operationId"]
            if path not in ("/livez", "/version"):
                assert "application/problem+json" in operation["responses"]["500"]["content"]


def test_answers_have_types_where_the_service_knows_them(document: dict[str, object]) -> None:
    schemas = document["components"]["schemas"]
    for field, name in (("objective", "ObjectiveDocument"), ("movement", "MovementDocument")):
        assert schemas["ResultDocument"]["properties"][field]["anyOf"][0] == {"$ref": f"#/components/schemas/{name}"}
    plan = schemas["PlanDocument"]["properties"]
    untyped = {name for name, field in plan.items() if "JsonValue" in json.dumps(field)}
    assert untyped == set()
    assert schemas["SweepSpec"]["properties"]["spec"]["$ref"] == "#/components/schemas/SpecDocument"
    export = document["paths"]["/v1/plans/{digest}/exports/{format}"]["get"]["parameters"]
    (device,) = (one for one in export if one["name"] == "device")
    assert device["schema"]["anyOf"][0]["enum"] == ["cuda", "cpu"]


def test_every_schema_has_one_name_and_one_content(document: dict[str, object]) -> None:
    """Generators name classes after titles: an alias, or a title of two schemas, is one class twice."""
    for name, schema in document["components"]["schemas"].items():
        assert schema["title"] == name
        assert "$ref" not in schema
        assert "__" not in name
