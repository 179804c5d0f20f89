"""The files of ``deploy/`` cannot be started where the tests run, so all that they name is checked instead."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from api.cli import app as command_line
from api.cli.service.run_server import GRACE_SECONDS
from api.http.app import create_app
from api.settings import SECRETS_VARIABLE, Settings
from tests.support.thorough import thorough

#: What a process needs to hand over its work and to let go of its queue, at most, on top of its requests' grace.
STOP_SECONDS = 10
MANIFESTS = ("serve.yaml", "worker.yaml", "secret.example.yaml")

Document = dict[str, Any]


@pytest.fixture(scope="module")
def compose(root: Path) -> Document:
    return yaml.safe_load((root / "deploy" / "compose.yaml").read_text())


def manifests(root: Path, *names: str) -> list[Document]:
    folder = root / "deploy" / "kubernetes"
    return [document for name in names or MANIFESTS for document in yaml.safe_load_all((folder / name).read_text())]


def of_kind(root: Path, kind: str) -> list[Document]:
    return [document for document in manifests(root) if document["kind"] == kind]


def pods(root: Path) -> dict[str, Document]:
    return {item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in of_kind(root, "Deployment")}


def service(compose: Document, name: str) -> Document:
    return compose["services"][name]


def paths(tmp_path: Path) -> set[str]:
    return set(create_app(Settings(data_dir=tmp_path)).openapi()["paths"])


def version(root: Path) -> str:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]


def dockerfile(root: Path) -> str:
    return (root / "Dockerfile").read_text()


def variables(root: Path, compose: Document) -> Iterator[str]:
    for name in ("api", "worker"):
        yield from service(compose, name)["environment"]
    for pod in pods(root).values():
        for container in pod["containers"]:
            yield from (item["name"] for item in container["env"])


def test_every_setting_exists(root: Path, compose: Document) -> None:
    names = set(variables(root, compose))
    assert names >= {"SHARDPLAN_DATABASE_URL", SECRETS_VARIABLE}
    for name in names - {SECRETS_VARIABLE}:
        assert name.removeprefix("SHARDPLAN_").lower() in Settings.model_fields, name


def test_values_are_taken(root: Path, compose: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    environments = [service(compose, name)["environment"] for name in ("api", "worker")]
    for pod in pods(root).values():
        environments.append({item["name"]: item["value"] for item in pod["containers"][0]["env"] if "value" in item})
    for environment in environments:
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                assert isinstance(value, str), name
                if name != SECRETS_VARIABLE:
                    patch.setenv(name, value)
            Settings()


def test_commands_exist(root: Path, compose: Document) -> None:
    known = {command.name for command in command_line.registered_commands}
    reported = [service(compose, name)["command"] for name in ("api", "worker")]
    reported += [pod["containers"][0]["args"] for pod in pods(root).values()]
    assert sorted(reported) == [["serve"], ["serve"], ["worker"], ["worker"]]
    assert {command for (command,) in reported} <= known
    assert 'ENTRYPOINT ["shardplan"]' in dockerfile(root)


def test_the_image_is_that_of_this_release(root: Path, compose: Document) -> None:
    for name in ("api", "worker"):
        assert service(compose, name)["image"] == f"shardplan:{version(root)}"
        context = root / "deploy" / service(compose, name)["build"]["context"]
        assert (context / "Dockerfile").is_file()
    (image,) = yaml.safe_load((root / "deploy" / "kubernetes" / "kustomization.yaml").read_text())["images"]
    assert image["newTag"] == version(root)
    for pod in pods(root).values():
        for container in pod["containers"] + pod["initContainers"]:
            assert container["image"] == image["name"]


def test_bases_are_pinned(compose: Document) -> None:
    assert re.fullmatch(r"postgres:\d+\.\d+-bookworm", service(compose, "db")["image"])


def test_health_checks_of_compose_ask_what_is_there(compose: Document, tmp_path: Path) -> None:
    port = service(compose, "worker")["environment"]["SHARDPLAN_WORKER_METRICS_PORT"]
    for name, expected in (("api", ("8080", "/readyz")), ("worker", (port, "/metrics"))):
        test = service(compose, name)["healthcheck"]["test"]
        assert test[:3] == ["CMD", "python", "-c"]
        compile(test[3], "healthcheck", "exec")
        (found,) = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", test[3])
        assert found == expected
        assert found[1] in paths(tmp_path)


def test_ports_of_compose_are_those_of_the_image_and_of_this_machine_alone(root: Path, compose: Document) -> None:
    assert service(compose, "api")["ports"] == ["127.0.0.1:8080:8080"]
    assert "EXPOSE 8080" in dockerfile(root)
    assert "ports" not in service(compose, "worker")  # or it could not be scaled
    assert "ports" not in service(compose, "db")


def test_a_worker_of_compose_can_be_scaled(compose: Document) -> None:
    worker = service(compose, "worker")
    assert "container_name" not in worker
    assert "volumes" not in worker  # each its own data folder: the image's anonymous volume


def test_secrets_of_compose_are_files_that_settings_read(root: Path, compose: Document, tmp_path: Path) -> None:
    for name in ("api", "worker"):
        assert service(compose, name)["secrets"] == ["shardplan_database_url"]
        assert service(compose, name)["environment"][SECRETS_VARIABLE] == "/run/secrets"
    assert "shardplan_database_url".removeprefix("shardplan_") in Settings.model_fields
    ignored = (root / ".gitignore").read_text().splitlines()
    for secret in compose["secrets"].values():
        assert f"deploy/{secret['file'].removeprefix('./').split('/')[0]}/" in ignored
    assert "PASSWORD:" not in (root / "deploy" / "compose.yaml").read_text()


def test_no_one_starts_before_the_database_answers(compose: Document) -> None:
    for name in ("api", "worker"):
        assert service(compose, name)["depends_on"]["db"]["condition"] == "service_healthy"
    assert service(compose, "db")["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert compose["volumes"].keys() == {"api", "db"}


def seconds(text: str) -> int:
    return int(re.fullmatch(r"(\d+)s", text)[1])


def test_processes_are_given_time_to_stop(root: Path, compose: Document) -> None:
    for name in ("api", "worker"):
        assert seconds(service(compose, name)["stop_grace_period"]) >= GRACE_SECONDS + STOP_SECONDS
    for pod in pods(root).values():
        hook = (
            pod["containers"][0].get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
        )
        assert hook[0] == "sleep"
        assert pod["terminationGracePeriodSeconds"] >= int(hook[1]) + GRACE_SECONDS + STOP_SECONDS


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_are_of_the_schema_of_kubernetes(root: Path, name: str) -> None:
    for document in manifests(root, name):
        kubernetes_validate.validate(document, "1.31", strict=True)


def test_a_wrong_manifest_is_found(root: Path) -> None:
    (deployment,) = [document for document in manifests(root, "worker.yaml") if document["kind"] == "Deployment"]
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["httpGet"]["url"] = "/"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, "1.31", strict=True)


@thorough
def test_probes_ask_what_is_there(root: Path, tmp_path: Path) -> None:
    routes = paths(tmp_path)
    environment = {
        name: {item["name"]: item.get("value") for item in pod["containers"][0]["env"]}
        for name, pod in pods(root).items()
    }
    ports = {
        name: {item["name"]: item["containerPort"] for item in pod["containers"][0]["ports"]}
        for name, pod in pods(root).items()
    }
    assert ports == {
        "shardplan": {"http": 8080},
        "shardplan-worker": {"metrics": int(environment["shardplan-worker"]["SHARDPLAN_WORKER_METRICS_PORT"])},
    }
    assert "SHARDPLAN_PORT=8080" in dockerfile(root)
    asked = {}
    for name, pod in pods(root).items():
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            get = pod["containers"][0][probe]["httpGet"]
            assert get["path"] in routes
            assert get["port"] in ports[name]
            asked[name, probe] = get["path"]
    assert asked["shardplan", "readinessProbe"] == "/readyz"
    assert asked["shardplan", "livenessProbe"] == "/livez"
    assert {path for (name, _), path in asked.items() if name == "shardplan-worker"} == {"/metrics"}


def test_pods_have_no_rights(root: Path) -> None:
    user = int(re.search(r"^USER (\d+)$", dockerfile(root), re.MULTILINE)[1])
    for pod in pods(root).values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == user
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"] + pod["initContainers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]


def test_whatever_is_written_is_a_volume(root: Path) -> None:
    """The data folder, the cache of machine code, which numba must be able to write to, and temporary files."""
    text = dockerfile(root)
    data = re.search(r"SHARDPLAN_DATA_DIR=(\S+)", text)[1]
    compiled = re.search(r"^    NUMBA_CACHE_DIR=(\S+)", text, re.MULTILINE)[1]
    for pod in pods(root).values():
        mounts = {item["mountPath"]: item for item in pod["containers"][0]["volumeMounts"]}
        assert mounts.keys() == {data, compiled, "/tmp"}
        assert all("emptyDir" in volume for volume in pod["volumes"])
        assert {item["name"] for item in mounts.values()} == {volume["name"] for volume in pod["volumes"]}
        # What the image compiled is copied as a folder of the copier's own: of another's it may not set the times.
        (copier,) = pod["initContainers"]
        (writable,) = copier["volumeMounts"]
        assert copier["command"] == ["cp", "-a", compiled, f"{writable['mountPath']}/"]
        assert writable["name"] == mounts[compiled]["name"]
        assert mounts[compiled]["subPath"] == Path(compiled).name


def test_selectors_select(root: Path) -> None:
    labels = {
        item["metadata"]["name"]: item["spec"]["template"]["metadata"]["labels"] for item in of_kind(root, "Deployment")
    }
    for item in of_kind(root, "Deployment"):
        assert item["spec"]["selector"]["matchLabels"] == labels[item["metadata"]["name"]]
    assert len({tuple(sorted(one.items())) for one in labels.values()}) == len(labels)
    for item in of_kind(root, "PodDisruptionBudget"):
        assert item["spec"]["selector"]["matchLabels"] == labels[item["metadata"]["name"]]
    (found,) = of_kind(root, "Service")
    assert found["spec"]["selector"] == labels["shardplan"]
    assert [port["targetPort"] for port in found["spec"]["ports"]] == ["http"]
    assert {item["metadata"]["name"] for item in of_kind(root, "PodDisruptionBudget")} == labels.keys()


def test_a_service_of_this_name_does_not_set_the_port(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes tells pods of services by variables, and one of a service named shardplan is a setting of ours."""
    (found,) = of_kind(root, "Service")
    monkeypatch.setenv(f"{found['metadata']['name'].upper()}_PORT", "tcp://10.0.0.7:80")
    with pytest.raises(ValueError, match="port"):
        Settings()
    for pod in pods(root).values():
        assert pod["enableServiceLinks"] is False


def test_the_secret_is_that_of_the_example_and_of_the_page(root: Path) -> None:
    (secret,) = of_kind(root, "Secret")
    page = (root / "docs" / "deploy.md").read_text()
    for pod in pods(root).values():
        (item,) = [item for item in pod["containers"][0]["env"] if item["name"] == "SHARDPLAN_DATABASE_URL"]
        key = item["valueFrom"]["secretKeyRef"]
        assert key["name"] == secret["metadata"]["name"]
        assert key["key"] in secret["stringData"]
        assert f"create secret generic {key['name']}" in page
        assert f"--from-literal={key['key']}=" in page
    kustomization = yaml.safe_load((root / "deploy" / "kubernetes" / "kustomization.yaml").read_text())
    assert "secret.example.yaml" not in kustomization["resources"]  # it would undo the real one
    assert sorted(kustomization["resources"]) == ["serve.yaml", "worker.yaml"]


def test_only_workers_solve_and_all_of_them_as_many(root: Path, compose: Document) -> None:
    for name, number in (("shardplan", "0"), ("shardplan-worker", "1")):
        env = {item["name"]: item.get("value") for item in pods(root)[name]["containers"][0]["env"]}
        assert env["SHARDPLAN_SOLVER_PROCESSES"] == number
    for name, number in (("api", "0"), ("worker", "1")):
        assert service(compose, name)["environment"]["SHARDPLAN_SOLVER_PROCESSES"] == number


def test_documents_are_json_too(root: Path) -> None:
    """Nothing that only YAML has, such as dates and anchors, reaches the server."""
    for document in manifests(root):
        assert json.loads(json.dumps(document)) == document
