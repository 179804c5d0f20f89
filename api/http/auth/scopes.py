"""Who may do what: the scope that each route needs."""

from collections.abc import Mapping

READ, SOLVE, PROMOTE, ADMIN = SCOPES = ("read", "solve", "promote", "admin")

#: For a priority above 0: who decides what runs in production decides what is planned first.
PRIORITY_SCOPE = PROMOTE

#: By method and address as the OpenAPI document has them. What stands here nowhere needs ``admin``.
ROUTE_SCOPES: Mapping[str, str] = {
    "GET /v1/solves": READ,
    "GET /v1/solves/{solve_id}": READ,
    "GET /v1/solves/{solve_id}/events": READ,
    "GET /v1/studies": READ,
    "GET /v1/studies/{study_id}": READ,
    "GET /v1/studies/{study_id}/points": READ,
    "GET /v1/studies/{study_id}/front": READ,
    "GET /v1/plans": READ,
    "GET /v1/plans/{digest}": READ,
    "GET /v1/plans/{digest}/diff/{other}": READ,
    "GET /v1/plans/{digest}/reshard/{other}": READ,
    "GET /v1/plans/{digest}/exports/{format}": READ,
    "GET /v1/plans/{digest}/explanation": READ,
    "GET /v1/plans/{digest}/timeline": READ,
    "GET /v1/plans/{digest}/drift": READ,
    "GET /v1/statistics": READ,
    "GET /v1/statistics/{digest}": READ,
    "GET /v1/statistics/{digest}/drift": READ,
    "GET /v1/channels": READ,
    "GET /v1/channels/{name}": READ,
    "GET /v1/channels/{name}/plan": READ,
    "GET /v1/channels/{name}/history": READ,
    "GET /v1/caller": READ,
    "GET /v1/examples": READ,
    "GET /v1/examples/{example_id}": READ,
    "GET /v1/hardware-profiles": READ,
    "GET /v1/hardware-profiles/{profile_id}": READ,
    "GET /v1/hardware-profiles/{profile_id}/cost-model": READ,
    "GET /v1/measurements": READ,
    "GET /v1/measurements/{digest}": READ,
    "GET /v1/cost-models": READ,
    "GET /v1/cost-models/{model_id}": READ,
    "GET /v1/cost-models/{model_id}/document": READ,
    "GET /v1/cost-models/{model_id}/report": READ,
    "GET /v1/cost-models/{model_id}/compare/{other_id}": READ,
    "POST /v1/solves": SOLVE,
    "POST /v1/solves:from-patch": SOLVE,
    "POST /v1/solves/{solve_id}:cancel": SOLVE,
    "POST /v1/solves/{solve_id}:retry": SOLVE,
    "DELETE /v1/solves/{solve_id}": SOLVE,
    "POST /v1/studies": SOLVE,
    "POST /v1/studies/{study_id}:cancel": SOLVE,
    "DELETE /v1/studies/{study_id}": SOLVE,
    "POST /v1/specs:validate": SOLVE,
    "POST /v1/plans:evaluate": SOLVE,
    "POST /v1/plans:certify": SOLVE,
    "POST /v1/statistics": SOLVE,
    "POST /v1/measurements": SOLVE,
    "PUT /v1/channels/{name}": PROMOTE,
    "POST /v1/channels/{name}:rollback": PROMOTE,
    "PUT /v1/hardware-profiles/{profile_id}/cost-model": PROMOTE,
    "POST /v1/cost-models": ADMIN,
    "POST /v1/cost-models/{model_id}:cancel": ADMIN,
    "GET /v1/keys": ADMIN,
    "POST /v1/keys": ADMIN,
    "DELETE /v1/keys/{key_id}": ADMIN,
    "GET /v1/audit": ADMIN,
    "GET /v1/webhooks": ADMIN,
    "POST /v1/webhooks": ADMIN,
    "GET /v1/webhooks/{webhook_id}": ADMIN,
    "DELETE /v1/webhooks/{webhook_id}": ADMIN,
    "POST /v1/webhooks/{webhook_id}:enable": ADMIN,
    "GET /v1/webhooks/{webhook_id}/deliveries": ADMIN,
    "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}:resend": ADMIN,
}


def is_open(path: str) -> bool:
    """Whether an address has no data of anybody, and so is answered without a key."""
    return not path.startswith("/v1")


def scope_of(method: str, path: str) -> str:
    """Return the scope that a route needs; ``path`` is that of the route, with names for what varies."""
    return ROUTE_SCOPES.get(f"{'GET' if method == 'HEAD' else method} {path}", ADMIN)
