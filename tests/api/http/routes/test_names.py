"""Names of all kinds, at every place that takes one: refused, or kept to the byte; never a path, header or query."""

import contextlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from planner.domain.formats.canonical_json import digest
from tests.support.service.live import Live
from tests.support.service.measured import benchmark_rows, model_document
from tests.support.service.specs import TINY, tiny
from tests.support.service.tenants import HOOK_URL, WEBHOOK_HOSTS, Tenant
from tests.support.thorough import thorough

#: By what they try. None may become part of anything but a text.
NAMES = {
    "nul": "a\x00b",
    "lone surrogate": "a\ud800b",
    "half of a pair": "\udc80",
    "right to left": "\u0645\u0631\u062d\u0628\u0627",
    "override of direction": "a\u202egnp.exe",
    "composed": unicodedata.normalize("NFC", "e\u0301t\u00e9"),
    "decomposed": unicodedata.normalize("NFD", "\u00e9t\u00e9"),
    "look-alike": "\u0430ds",  # a Cyrillic a
    "emoji": "\U0001f980",
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "no width": "a\u200bb",
    "ten kilobytes": "a" * 10_240,
    "one too long": "a" * 201,
    "as long as may be": "a" * 200,
    "nothing": "",
    "space": " ",
    "tab": "a\tb",
    "line end": "a\n",
    "header": "a\r\nX-Injected: yes",
    "line separator": "a\u2028b",
    "escape": "a\x1b[31mb",
    "climbs": "../../etc/passwd",
    "climbs inside": "a/../../b",
    "climbs in code": "%2e%2e%2f%2e%2e",
    "climbs in code inside": "a%2f..%2fb",
    "dots": "..",
    "root": "/etc/passwd",
    "drive": "C:\\x",
    "statement": "a'; DROP TABLE solves; --",
    "statement first": "'; DROP TABLE solves; --",
    "pattern": "a%_*",
    "element": "<script>alert(1)</script>",
    "element inside": "a<img src=x onerror=alert(1)>",
    "formula": "=cmd|' /C calc'!A0",
    "sum": "+1+1",
    "difference": "-1",
    "mention": "@SUM(A1)",
    "flag": "--help",
    "template": "a{{7*7}}${7*7}",
    "lookup": "a${jndi:ldap://x/y}",
    "quotes": "a\"b'c`d",
    "backslash": "a\\u0000",
    "prototype": "__proto__",
    "null": "null",
    "number": "0",
    "punctuation": "a|b,(c)[d]/e:f@g+h#i.j-k_l",
    "words": "The model of the ads team, v2",
}
#: The rules, as the documentation tells them.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+#|,()\[\]-]{0,199}")
TITLE = re.compile(r"[A-Za-z0-9_][ -~]{0,199}")
MODULE_PATH = re.compile(r"(?=.{0,200}\Z)([A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*)?")
TAG = re.compile(r"[a-z0-9._=-]{1,64}")
SEGMENT = r"[a-z0-9_-][a-z0-9._-]{0,63}"
CHANNEL = re.compile(rf"{SEGMENT}(/{SEGMENT}){{0,7}}")
MODEL = re.compile(r"[a-z0-9_][a-z0-9._-]{0,63}")
REQUEST_KEY = re.compile(r"[!-~]([ -~]{0,253}[!-~])?")
TEXT = re.compile(r"[A-Za-z0-9_]([ -~]{0,78}[!-~])?")


class Service:
    """A service that takes names wherever one can be given, and what it told."""

    def __init__(self, live: Live, folder: Path) -> None:
        self.live, self.folder = live, folder
        self.owner = Tenant(live, "owner", rows=3000)
        self.owner.publish()
        self.files = self.list_files()

    def list_files(self) -> set[str]:
        """What lies in the folder of the service and next to it, but for what comes and goes as it works."""
        found = (str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))
        return {name for name in found if not re.search("(-wal|-shm|[.]prune)$|^data/running/", name)}

    def send(self, method: str, url: str, **options: Any) -> httpx.Response:
        """Send a request as the owner of everything."""
        return self.owner.send(method, url, **options)

    def plan_of(self, spec: object) -> tuple[httpx.Response, Any]:
        """Have a spec solved; return the answer and, where it was taken, the plan."""
        answer = self.send("POST", "/v1/solves", content=document(spec), headers=JSON | {"Prefer": "wait=60"})
        if answer.status_code >= 400:
            return answer, None
        return answer, self.send("GET", answer.json()["result"]["plan_url"]).json()


JSON = {"Content-Type": "application/json"}
#: Sends a name to one place; returns the answer and, where it was taken, the name as it is read from there.
Place = Callable[[Service, str], tuple[httpx.Response, object]]


def document(content: object) -> bytes:
    """A body; half pairs are written as JSON can."""
    return json.dumps(content).encode()


def of_spec(service: Service, name: str) -> tuple[httpx.Response, object]:
    # A plan keeps the name that it was first published under: one of its own for each.
    rows = 700 + list(NAMES.values()).index(name)
    answer, plan = service.plan_of(tiny(name=name, model__tables__0__num_embeddings=rows))
    if plan is None:
        return answer, None
    listed = service.send("GET", f"/v1/plans?name={quote(name, safe='')}").json()["plans"]
    assert plan["plan_digest"] in {one["plan_digest"] for one in listed}
    return answer, answer.json()["name"]


def of_table(service: Service, name: str) -> tuple[httpx.Response, object]:
    answer, plan = service.plan_of(tiny(name="of-table", model__tables__0__name=name))
    if plan is None:
        return answer, None
    address = f"/v1/plans/{plan['plan_digest']}"
    exported = service.send("GET", f"{address}/exports/torchrec?module_path=m").text
    explained = service.send("GET", f"{address}/explanation").json()
    assert json.dumps(name) in exported
    assert name in {table["name"] for table in explained["tables"]}
    assert explained["plan_digest"] == plan["plan_digest"]
    return answer, next(table["name"] for table in plan["tables"] if table["name"] != "b")


def of_group(service: Service, name: str) -> tuple[httpx.Response, object]:
    """A table that is named again where tables are grouped."""
    spec = tiny(name="of-group", model__tables__0__name=name, constraints__same_rank=[[name, "b"]])
    answer, plan = service.plan_of(spec)
    ranks = {shard["rank"] for table in (plan or {"tables": []})["tables"] for shard in table["shards"]}
    return answer, name if len(ranks) == 1 else None


def of_feature(service: Service, name: str) -> tuple[httpx.Response, object]:
    features = [{"name": name, "pooling_factor": 2.0}]
    spec = tiny(name="of-feature", model__tables__0__features=features)
    del spec["model"]["tables"][0]["pooling_factor"]
    answer = service.send("POST", "/v1/solves", content=document(spec), headers=JSON | {"Prefer": "wait=60"})
    return answer, name  # plans do not name features


def of_module(service: Service, name: str) -> tuple[httpx.Response, object]:
    answer, plan = service.plan_of(tiny(name="of-module", model__tables__0__module_path=name))
    return answer, plan and plan["tables"][0].get("module_path", "")


def of_tag(service: Service, name: str) -> tuple[httpx.Response, object]:
    address = f"?tag={quote(name.encode(errors='surrogatepass'), safe='')}"
    answer = service.send("POST", f"/v1/solves{address}&fresh=true", json=TINY)
    if answer.status_code >= 400:
        assert service.send("GET", f"/v1/solves{address}").status_code == answer.status_code
        return answer, None
    (found,) = service.send("GET", f"/v1/solves{address}").json()["solves"]
    return answer, found["tags"][0]


def of_channel(service: Service, name: str) -> tuple[httpx.Response, object]:
    address = f"/v1/channels/{quote(name.encode(errors='surrogatepass'), safe='')}"
    answer = service.send("PUT", address, json={"plan_digest": service.owner.ids["plan"]})
    if answer.status_code >= 400:
        return answer, None
    assert service.send("GET", f"/v1/audit?subject={quote(f'channels/{name}', safe='')}").json()["entries"], name
    assert service.send("GET", f"{address}/plan").json()["plan_digest"] == service.owner.ids["plan"]
    return answer, service.send("GET", address).json()["name"]


def of_key(service: Service, name: str) -> tuple[httpx.Response, object]:
    answer = service.send("POST", "/v1/keys", content=document({"name": name, "scopes": ["read"]}), headers=JSON)
    return answer, listed(service, answer, "keys")


def of_webhook(service: Service, name: str) -> tuple[httpx.Response, object]:
    body = {"name": name, "url": HOOK_URL}
    answer = service.send("POST", "/v1/webhooks", content=document(body), headers=JSON)
    found = listed(service, answer, "webhooks")
    if answer.status_code < 400:  # there may be only so many
        assert service.send("DELETE", f"/v1/webhooks/{answer.json()['id']}").status_code == 204
    return answer, found


def listed(service: Service, answer: httpx.Response, what: str) -> object:
    """The name of what was made, as a list tells it."""
    if answer.status_code >= 400:
        return None
    found = service.send("GET", f"/v1/{what}").json()[what]
    return next(one["name"] for one in found if one["id"] == answer.json()["id"])


def of_model(service: Service, name: str) -> tuple[httpx.Response, object]:
    model = model_document("named") | {"name": name}
    with contextlib.suppress(UnicodeEncodeError):  # half pairs have no digest
        model["digest"] = digest({key: value for key, value in model.items() if key != "digest"})
    body = {"document": model}
    answer = service.send("POST", "/v1/cost-models", content=document(body), headers=JSON)
    if answer.status_code >= 400:
        return answer, None
    made = service.send("GET", f"/v1/cost-models/{answer.json()['id']}").json()
    assert made["reference"] == f"learned:{name}@1"
    return answer, made["name"]


def of_device(service: Service, name: str) -> tuple[httpx.Response, object]:
    rows = [{**row, "device": name} for row in benchmark_rows()[:3]]
    answer = service.send("POST", "/v1/measurements", content=document({"rows": rows}), headers=JSON)
    return answer, None if answer.status_code >= 400 else answer.json()["device"]


def of_request(service: Service, name: str) -> tuple[httpx.Response, object]:
    """A name of a request, which comes as a header."""
    shown = name.encode(errors="surrogatepass")
    headers = [*service.owner.headers.items(), (b"Idempotency-Key", shown)]
    answers = [
        service.live.request("POST", "/v1/solves?fresh=true", json=tiny(name="of-request"), headers=headers)
        for _ in range(2)
    ]
    first, again = (answer.headers.get("location") for answer in answers)
    return answers[0], name if first == again else None


@dataclass(frozen=True)
class Rule:
    """Where names are given, and which are good there."""

    place: Place
    good: re.Pattern[str]

    def takes(self, name: str) -> bool:
        """Whether a name is good there."""
        return self.good.fullmatch(name) is not None


RULES = {
    "spec": Rule(of_spec, TITLE),
    "table": Rule(of_table, NAME),
    "group": Rule(of_group, NAME),
    "feature": Rule(of_feature, NAME),
    "module": Rule(of_module, MODULE_PATH),
    "tag": Rule(of_tag, TAG),
    "channel": Rule(of_channel, CHANNEL),
    "key": Rule(of_key, TITLE),
    "webhook": Rule(of_webhook, TITLE),
    "model": Rule(of_model, MODEL),
    "device": Rule(of_device, TEXT),
    "request": Rule(of_request, REQUEST_KEY),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("names")
    with Live.of(folder / "data", auth="keys", webhook_hosts=WEBHOOK_HOSTS) as live:
        yield Service(live, folder)


@thorough
@pytest.mark.parametrize("where", RULES)
def test_a_name_is_preserved_as_it_is_or_refused(service: Service, where: str) -> None:
    rule, taken = RULES[where], []
    for kind, name in NAMES.items():
        answer, found = rule.place(service, name)
        for header, value in answer.headers.items():
            assert "\r" not in value + header, kind
            assert "\n" not in value + header, kind
        assert "x-injected" not in answer.headers
        if rule.takes(name):
            assert answer.status_code in (200, 201, 202), f"{kind}: {answer.text}"
            assert found == name, kind
            taken.append(name)
            continue
        assert 400 <= answer.status_code < 500, f"{kind}: {answer.status_code} {answer.text}"
        assert answer.headers["content-type"] == "application/problem+json"
        if len(name) > 6 and not name.isalnum():
            assert name not in answer.text, kind
            assert json.dumps(name)[1:-1] not in answer.text, kind
    assert taken
    assert len(taken) < len(NAMES)
    assert service.list_files() == service.files  # whatever its name, nothing lies anywhere for it


def test_names_that_look_alike_are_not_two(service: Service) -> None:
    """Where one form of a letter were taken, the other would be another name that nobody can tell from it."""
    assert NAMES["composed"] != NAMES["decomposed"]
    assert not any(rule.takes(NAMES[kind]) for rule in RULES.values() for kind in ("composed", "decomposed"))


def test_tables_are_still_there(service: Service) -> None:
    assert service.send("GET", "/v1/solves").json()["solves"]
    assert service.send("GET", f"/v1/plans/{service.owner.ids['plan']}").status_code == 200
