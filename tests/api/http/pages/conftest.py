"""One service with plans of all kinds, and one browser, for the tests of pages."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.service.browser import Browser
from tests.support.service.server import Server
from tests.support.service.specs import tiny

#: As bad as the service lets names be.
HOSTILE_NAME = "x<img src=x onerror=\"document.title='owned'\"><script>alert(1)</script>{a|b}"
HOSTILE_TABLES = ("__proto__", "constructor", "a|b,(c)[d]/e:f@g+h#i", "t" * 80)


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A service, and what is in it."""

    server: Server
    solve: str  # one that ended with a plan
    first: str  # its plan
    second: str  # another plan, of the same name
    infeasible: str  # a solve without a plan
    sweep: str  # a study with a front
    jobs: str  # a study without one

    def addresses(self) -> dict[str, str]:
        """Every page with something on it, by a name for people."""
        return {
            "overview": "/",
            "solves": "/ui/solves",
            "solve": f"/ui/solves/{self.solve}",
            "solve without a plan": f"/ui/solves/{self.infeasible}",
            "plans": "/ui/plans",
            "plan": f"/ui/plans/{self.first}",
            "diff": f"/ui/plans/{self.first}/diff/{self.second}",
            "studies": "/ui/studies",
            "sweep": f"/ui/studies/{self.sweep}",
            "jobs": f"/ui/studies/{self.jobs}",
            "channels": "/ui/channels",
            "channel": "/ui/channels/ads/ranker/prod",
            "profiles": "/ui/hardware-profiles",
            "profile": "/ui/hardware-profiles/dgx-h100-80g",
            "cost models": "/ui/cost-models",
            "cost model": "/ui/cost-models/cpu-epyc@1",
        }


def hostile_spec(**changes: object) -> dict[str, object]:
    """Tables of hostile names on eight ranks."""
    tables = [
        {"name": name, "num_embeddings": 200_000 * (i + 1), "embedding_dim": 64, "pooling_factor": 2.0 + i}
        for i, name in enumerate(HOSTILE_TABLES)
    ]
    return tiny(name=HOSTILE_NAME, model__tables=tables, hardware__ranks_per_host=8, **changes)


def solved(server: Server, spec: object) -> dict[str, object]:
    """The document of a solve that has ended."""
    answer = server.client.post("/v1/solves", json=spec, headers={"Prefer": "wait=60"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def studied(server: Server, study: object) -> str:
    """The id of a study that has ended."""
    answer = server.client.post("/v1/studies", json=study, headers={"Prefer": "wait=60"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def sweep(spec: object) -> dict[str, object]:
    """A study of six points, one of which cannot be made."""
    batches = {"field": "global_batch_size", "values": [64, 65, 128]}
    axes = [{"field": "hardware.num_hosts", "values": [1, 2]}, batches]
    return {"kind": "sweep", "name": "hosts and batches", "spec": spec, "axes": axes}


def point(server: Server, channel: str, digest: str) -> None:
    """Point a channel at a plan."""
    address = f"/v1/channels/{channel}"
    before = server.client.get(address)
    condition = {"If-None-Match": "*"} if before.status_code == 404 else {"If-Match": before.headers["etag"]}
    server.client.put(address, json={"plan_digest": digest}, headers=condition).raise_for_status()


@pytest.fixture(scope="module")
def filled(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """A service in a process of its own."""
    server = Server(root, tmp_path_factory.mktemp("data")).wait_until_ready()
    try:
        first = solved(server, hostile_spec())
        forced = {"sharding_types": ["row_wise"]}
        second = solved(server, hostile_spec(model__tables__3__constraints=forced))
        infeasible = solved(
            server,
            tiny(
                name="too-large",
                model__tables__0__num_embeddings=450_000_000,
                model__tables__0__embedding_dim=256,
                model__tables__1__num_embeddings=450_000_000,
                model__tables__1__embedding_dim=256,
            ),
        )
        digests = [solve["result"]["plan_digest"] for solve in (first, second)]
        for digest in digests:
            point(server, "ads/ranker/prod", digest)
        job = {"label": "ads", "spec": tiny(), "shapes": [{"label": "half", "set": {"hardware.ranks_per_host": 2}}]}
        yield Filled(
            server=server,
            solve=first["id"],
            first=digests[0],
            second=digests[1],
            infeasible=infeasible["id"],
            sweep=studied(server, sweep(hostile_spec())),
            jobs=studied(server, {"kind": "jobs", "num_hosts": 1, "ranks_per_host": 4, "jobs": [job]}),
        )
    finally:
        server.stop()


@pytest.fixture(scope="module")
def browser(filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that is at home at the service."""
    folder = tmp_path_factory.mktemp("browser")
    with Browser(folder, f"http://127.0.0.1:{filled.server.port}") as browser:
        browser.resize(1400)
        yield browser
