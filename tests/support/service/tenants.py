"""Two tenants of one service, and what one tries to reach of the other on every route."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.http.auth.keys.format import Key
from api.http.auth.keys.service import ApiKeyService
from api.store.access.audit import LOCAL
from api.store.database import TenantStore
from tests.support.service.live import Live
from tests.support.service.measured import DEVICE, benchmark_rows, model_document
from tests.support.service.specs import tiny
from tests.support.service.statistics_files import document as statistics_document

PROFILE, OTHER_PROFILE = "dgx-h100-80g", "dgx-a100-80g"
#: If no key listens: what is to be told waits.
WEBHOOK_HOSTS = "http://127.0.0.1:9"
HOOK_URL = f"{WEBHOOK_HOSTS}/hook"
NO_DIGEST = "sha256:" + "0" * 64
#: Ids that nobody has.
UNKNOWN = {
    "solve": "0" * 28,
    "study": "0" * 28,
    "plan": NO_DIGEST,
    "statistics": NO_DIGEST,
    "channel": "no/such",
    "measurements": NO_DIGEST,
    "model": "nothing@1",
    "document": NO_DIGEST,
    "key": "0" * 12,
    "profile": OTHER_PROFILE,
    "webhook": "wh_" + "0" * 12,
    "delivery": "msg_" + "0" * 28,
}


class Tenant:
    """Somebody who may do everything in one tenant, and has one of each."""

    def __init__(self, live: Live, name: str, *, rows: int) -> None:
        self.live, self.name = live, name
        keys = ApiKeyService(TenantStore(live.app.state.services.store.engines, name))
        record, text = keys.create(f"key-of-{name}", ["admin"], expires_in_seconds=None, by=LOCAL)
        self.headers = {"Authorization": f"Bearer {text}"}
        solve = self.solve(tiny(name=f"spec-of-{name}", model__tables__0__num_embeddings=rows))
        model = model_document(f"{name}-model")
        stored = self.made("POST", "/v1/cost-models", {"document": model})
        measured = {"rows": benchmark_rows(seed=rows)}
        study = study_of(tiny(name=f"spec-of-{name}", model__tables__0__num_embeddings=rows))
        self.ids = {
            "solve": solve["id"],
            "study": self.send("POST", "/v1/studies", json=study, headers={"Prefer": "wait=60"}).json()["id"],
            "plan": solve["result"]["plan_digest"],
            "statistics": self.made("POST", "/v1/statistics", statistics_document("x", seed=rows))["statistics_digest"],
            "channel": f"{name}/prod",
            "measurements": self.made("POST", "/v1/measurements", measured)["measurements_digest"],
            "model": stored["id"],
            "document": stored["digest"],
            "key": record.id,
            "profile": PROFILE,
            "webhook": self.made("POST", "/v1/webhooks", {"name": f"of {name}", "url": HOOK_URL})["id"],
        }
        self.plan = self.send("GET", f"/v1/plans/{self.ids['plan']}").json()
        assert Key.parse(text) is not None

    def publish(self) -> None:
        """Point a channel at the plan, twice, and make the model active."""
        channel = f"/v1/channels/{self.ids['channel']}"
        first = self.send("PUT", channel, json={"plan_digest": self.ids["plan"]})
        log = f"/v1/webhooks/{self.ids['webhook']}/deliveries"
        self.ids["delivery"] = self.send("GET", log).json()["deliveries"][0]["id"]
        changed = {"If-Match": first.headers["etag"]}
        assert self.send("PUT", channel, json={"plan_digest": self.ids["plan"]}, headers=changed).status_code == 200
        self.made("PUT", f"/v1/hardware-profiles/{PROFILE}/cost-model", {"cost_model": self.ids["model"]})

    def send(self, method: str, url: str, **options: Any) -> Any:
        """Send a request as this tenant."""
        return self.live.request(method, url, **{**options, "headers": {**self.headers, **options.get("headers", {})}})

    def made(self, method: str, url: str, body: object) -> dict[str, Any]:
        """Send a document, which has to be taken."""
        answer = self.send(method, url, json=body)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def solve(self, spec: object) -> dict[str, Any]:
        """Submit a spec and return the solve when it has ended."""
        answer = self.send("POST", "/v1/solves", json=spec, headers={"Prefer": "wait=60"})
        assert answer.status_code == 200, answer.text
        return answer.json()


@dataclass(frozen=True, slots=True)
class Line:
    """What is tried on one route.

    ``hidden``: what is asked with another tenant's ids is answered as if nobody had them. ``own``: the answer tells of
    the caller's things alone. ``shared``: everybody gets the same.
    """

    kind: str
    urls: tuple[str, ...]
    bodies: tuple[object, ...] = (None,)


def hidden(*urls: str, bodies: tuple[object, ...] = (None,)) -> Line:
    return Line("hidden", urls, bodies)


def study_of(spec: object) -> dict[str, object]:
    """Return a study of one point."""
    return {"kind": "sweep", "spec": spec, "axes": [{"field": "model.batch_size_per_rank", "values": [64]}]}


#: In texts, ``<x>`` is an id of the other tenant, or one that nobody has; ``<own x>`` one of the caller's.
SPECS = (
    tiny(model__tables__0__access={"statistics": "<statistics>#x"}),
    tiny(previous_plan={"digest": "<plan>"}),
    tiny(solver__warm_start={"digest": "<plan>"}),
    tiny(cost_model="learned:<model>"),
    tiny(cost_model="learned:<document>"),
)
JOB = {
    "plan_digest": "<plan>",
    "steps": 10,
    "device": DEVICE,
    "ranks": [{"rank": rank, "seconds": {"forward_compute": 0.001}} for rank in range(2)],
}
LINES: Mapping[str, Line] = {
    "GET /v1/studies": Line("own", ("/v1/studies",)),
    "POST /v1/studies": hidden("/v1/studies", bodies=tuple(study_of(spec) for spec in SPECS)),
    "GET /v1/studies/{study_id}": hidden("/v1/studies/<study>", "/v1/studies/<study>?wait=1"),
    "GET /v1/studies/{study_id}/points": hidden("/v1/studies/<study>/points"),
    "GET /v1/studies/{study_id}/front": hidden("/v1/studies/<study>/front"),
    "POST /v1/studies/{study_id}:cancel": hidden("/v1/studies/<study>:cancel"),
    "DELETE /v1/studies/{study_id}": hidden("/v1/studies/<study>"),
    "GET /v1/solves": Line("own", ("/v1/solves", "/v1/solves?state=succeeded")),
    "POST /v1/solves": hidden("/v1/solves", bodies=SPECS),
    "POST /v1/solves:from-patch": hidden(
        "/v1/solves:from-patch",
        bodies=(
            {"solve": "<solve>", "patch": {}},
            {"solve": "<own solve>", "patch": {"previous_plan": {"digest": "<plan>"}}},
        ),
    ),
    "GET /v1/solves/{solve_id}": hidden("/v1/solves/<solve>", "/v1/solves/<solve>?wait=1"),
    "GET /v1/solves/{solve_id}/events": hidden("/v1/solves/<solve>/events"),
    "POST /v1/solves/{solve_id}:cancel": hidden("/v1/solves/<solve>:cancel"),
    "POST /v1/solves/{solve_id}:retry": hidden("/v1/solves/<solve>:retry"),
    "DELETE /v1/solves/{solve_id}": hidden("/v1/solves/<solve>"),
    "POST /v1/specs:validate": hidden("/v1/specs:validate", bodies=SPECS),
    "POST /v1/plans:evaluate": hidden(
        "/v1/plans:evaluate",
        "/v1/plans:evaluate?cost_model=learned:<model>",
        "/v1/plans:evaluate?cost_model=learned:<document>",
        bodies=({"spec": SPECS[0], "plan": "<own document of the plan>"},),
    ),
    "POST /v1/plans:certify": hidden(
        "/v1/plans:certify",
        "/v1/plans:certify?cost_model=learned:<model>",
        "/v1/plans:certify?cost_model=learned:<document>",
        bodies=({"spec": SPECS[0], "plan": "<own document of the plan>"},),
    ),
    "GET /v1/plans": Line("own", ("/v1/plans", "/v1/plans?name=spec-of-ours")),
    "GET /v1/plans/{digest}": hidden("/v1/plans/<plan>", "/v1/plans/<plan>?rank=1"),
    "GET /v1/plans/{digest}/diff/{other}": hidden(
        "/v1/plans/<plan>/diff/<own plan>", "/v1/plans/<own plan>/diff/<plan>"
    ),
    "GET /v1/plans/{digest}/reshard/{other}": hidden(
        "/v1/plans/<plan>/reshard/<own plan>", "/v1/plans/<own plan>/reshard/<plan>?rank=0"
    ),
    "GET /v1/plans/{digest}/exports/{format}": hidden(
        "/v1/plans/<plan>/exports/torchrec?module_path=m", "/v1/plans/<plan>/exports/json"
    ),
    "GET /v1/plans/{digest}/explanation": hidden("/v1/plans/<plan>/explanation"),
    "GET /v1/plans/{digest}/timeline": hidden("/v1/plans/<plan>/timeline"),
    "GET /v1/plans/{digest}/drift": hidden(
        "/v1/plans/<plan>/drift?statistics=<own statistics>", "/v1/plans/<own plan>/drift?statistics=<statistics>"
    ),
    "GET /v1/statistics": Line("own", ("/v1/statistics",)),
    "POST /v1/statistics": Line("own", ("/v1/statistics",), (statistics_document("x", seed=7),)),
    "GET /v1/statistics/{digest}": hidden("/v1/statistics/<statistics>"),
    "GET /v1/statistics/{digest}/drift": hidden(
        "/v1/statistics/<statistics>/drift?against=<own statistics>",
        "/v1/statistics/<own statistics>/drift?against=<statistics>",
    ),
    "GET /v1/channels": Line("own", ("/v1/channels",)),
    "GET /v1/channels/{name}": hidden("/v1/channels/<channel>"),
    "GET /v1/channels/{name}/plan": hidden("/v1/channels/<channel>/plan", "/v1/channels/<channel>/plan?rank=0"),
    "GET /v1/channels/{name}/history": hidden("/v1/channels/<channel>/history"),
    "PUT /v1/channels/{name}": hidden("/v1/channels/new", bodies=({"plan_digest": "<plan>"},)),
    "POST /v1/channels/{name}:rollback": hidden("/v1/channels/<channel>:rollback"),
    "GET /v1/measurements": Line("own", ("/v1/measurements",)),
    "POST /v1/measurements": hidden("/v1/measurements", bodies=(JOB,)),
    "GET /v1/measurements/{digest}": hidden("/v1/measurements/<measurements>"),
    "GET /v1/cost-models": Line("own", ("/v1/cost-models",)),
    "POST /v1/cost-models": hidden("/v1/cost-models", bodies=({"name": "n", "measurements": ["<measurements>"]},)),
    "GET /v1/cost-models/{model_id}": hidden("/v1/cost-models/<model>", "/v1/cost-models/<model>?wait=1"),
    "POST /v1/cost-models/{model_id}:cancel": hidden("/v1/cost-models/<model>:cancel"),
    "GET /v1/cost-models/{model_id}/document": hidden("/v1/cost-models/<model>/document"),
    "GET /v1/cost-models/{model_id}/report": hidden("/v1/cost-models/<model>/report"),
    "GET /v1/cost-models/{model_id}/compare/{other_id}": hidden(
        "/v1/cost-models/<model>/compare/<own model>",
        "/v1/cost-models/<own model>/compare/<model>",
        "/v1/cost-models/<own model>/compare/<own model>?measurements=<measurements>",
    ),
    "GET /v1/hardware-profiles": Line("shared", ("/v1/hardware-profiles",)),
    "GET /v1/hardware-profiles/{profile_id}": Line("shared", (f"/v1/hardware-profiles/{PROFILE}",)),
    "GET /v1/hardware-profiles/{profile_id}/cost-model": hidden("/v1/hardware-profiles/<profile>/cost-model"),
    "PUT /v1/hardware-profiles/{profile_id}/cost-model": hidden(
        f"/v1/hardware-profiles/{PROFILE}/cost-model", bodies=({"cost_model": "<model>"},)
    ),
    "GET /v1/examples": Line("shared", ("/v1/examples",)),
    "GET /v1/examples/{example_id}": Line("shared", ("/v1/examples/three-tables",)),
    "GET /v1/caller": Line("own", ("/v1/caller",)),
    "GET /v1/keys": Line("own", ("/v1/keys",)),
    "POST /v1/keys": Line("own", ("/v1/keys",), ({"name": "made", "scopes": ["read"]},)),
    "DELETE /v1/keys/{key_id}": hidden("/v1/keys/<key>"),
    "GET /v1/webhooks": Line("own", ("/v1/webhooks",)),
    "POST /v1/webhooks": Line("own", ("/v1/webhooks",), ({"name": "made", "url": HOOK_URL},)),
    "GET /v1/webhooks/{webhook_id}": hidden("/v1/webhooks/<webhook>"),
    "DELETE /v1/webhooks/{webhook_id}": hidden("/v1/webhooks/<webhook>"),
    "POST /v1/webhooks/{webhook_id}:enable": hidden("/v1/webhooks/<webhook>:enable"),
    "GET /v1/webhooks/{webhook_id}/deliveries": hidden("/v1/webhooks/<webhook>/deliveries"),
    "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}:resend": hidden(
        "/v1/webhooks/<webhook>/deliveries/<delivery>:resend"
    ),
    "GET /v1/audit": Line("own", ("/v1/audit", "/v1/audit?subject=channels/ours/prod")),
}


def filled(template: object, ids: Mapping[str, str], caller: Tenant) -> Any:
    """Return a template with ids in it."""
    text = json.dumps(template).replace('"<own document of the plan>"', json.dumps(caller.plan))
    for name, value in caller.ids.items():
        text = text.replace(f"<own {name}>", value)
    for name, value in ids.items():
        text = text.replace(f"<{name}>", value)
    return json.loads(text)
