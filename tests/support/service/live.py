"""A service inside the test's process, spoken to without a network."""

import contextlib
from functools import partial
from pathlib import Path
from typing import Self

import httpx
from anyio.from_thread import start_blocking_portal
from fastapi import FastAPI

from api.execution.processes.fit import FitFunction
from api.execution.processes.solve import PlanFunction
from api.http.app import create_app
from api.settings import Settings
from api.specs.references.learned_model import fit as fit_model
from planner.pipeline import plan as plan_pipeline
from tests.support.service.patient import PatientTransport
from tests.support.waiting import PATIENCE_SECONDS


def settings_for(folder: Path, **changes: object) -> Settings:
    """Settings that do not depend on the environment of whoever runs the tests."""
    return Settings(data_dir=folder, **{"plan_cache_bytes": 1024**2, **changes})


class Live:
    """Runs the lifespan of an app in a thread; requests are plain calls."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self._stack = contextlib.ExitStack()

    @classmethod
    def of(
        cls, folder: Path, *, plan: PlanFunction = plan_pipeline, fit: FitFunction = fit_model, **changes: object
    ) -> "Live":
        """A service with its data in ``folder``."""
        return cls(create_app(settings_for(folder, **changes), plan=plan, fit=fit))

    def __enter__(self) -> Self:
        self._portal = self._stack.enter_context(start_blocking_portal())
        self._stack.enter_context(self._portal.wrap_async_context_manager(self.app.router.lifespan_context(self.app)))
        transport = PatientTransport(httpx.ASGITransport(self.app, raise_app_exceptions=False))
        self._client = httpx.AsyncClient(transport=transport, base_url="http://test", timeout=PATIENCE_SECONDS)
        self._stack.callback(self._portal.call, self._client.aclose)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def request(self, method: str, url: str, **options: object) -> httpx.Response:
        """Send a request and return the whole answer."""
        return self._portal.call(partial(self._client.request, method, url, **options))

    def send(self, request: httpx.Request) -> httpx.Response:
        """Send a request as it is."""
        return self._portal.call(self._client.send, request)

    def get(self, url: str, **options: object) -> httpx.Response:
        """GET."""
        return self.request("GET", url, **options)

    def post(self, url: str, document: object = None, **options: object) -> httpx.Response:
        """POST a JSON document."""
        return self.request("POST", url, **({} if document is None else {"json": document}), **options)

    def put(self, url: str, document: object, **options: object) -> httpx.Response:
        """PUT a JSON document."""
        return self.request("PUT", url, json=document, **options)

    def solve(self, spec: object, *, wait: int = 30, query: str = "") -> dict[str, object]:
        """Submit a spec and return the solve when it has ended."""
        answer = self.post(f"/v1/solves{query}", spec, headers={"Prefer": f"wait={wait}"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def num_solves(self) -> int:
        """How many solves are stored."""
        return len(self.get("/v1/solves?page_size=500").json()["solves"])
