"""What a verified token says of who shows it, and how long it may be believed."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from api.http.auth.principal import Principal
from api.http.auth.scopes import SCOPES
from api.http.auth.tokens.trusted_issuer import Trust
from api.store.tenants import DEFAULT_TENANT, is_tenant

#: Clocks of issuers and servers may differ by so much.
LEEWAY_SECONDS = 30.0
_SUBJECT = re.compile(r"[!-~]{1,200}")

Claims = Mapping[str, object]


class InvalidToken(Exception):
    """The token is not taken; the message is for the caller who sent it."""


@dataclass(frozen=True, slots=True)
class Verified:
    """Somebody whose token was verified, between two times in seconds since the epoch."""

    caller: Principal
    not_before: float
    expires_at: float

    def check(self, now: float) -> None:
        """Raise ``InvalidToken`` where the token is not valid at a time."""
        if now >= self.expires_at + LEEWAY_SECONDS:
            raise InvalidToken("the token has expired")
        if now < self.not_before - LEEWAY_SECONDS:
            raise InvalidToken("the token is not valid yet")


def verified(claims: Claims, trust: Trust) -> Verified:
    """Return what the claims of a token say whose signature is good. Raises ``InvalidToken``."""
    if claims.get("iss") != trust.issuer:
        raise InvalidToken("the token is of another issuer")
    audience = claims.get("aud")
    if trust.audience not in (audience if isinstance(audience, list) else [audience]):
        raise InvalidToken("the token is for another audience")
    subject = claims.get("sub")
    if not isinstance(subject, str) or _SUBJECT.fullmatch(subject) is None:
        raise InvalidToken("the token names no subject (sub) of 1 to 200 printable ASCII characters")
    caller = Principal(who=f"oidc:{subject}", scopes=_scopes(claims, trust), tenant=_tenant(claims, trust))
    not_before = max(_seconds(claims, "nbf", -math.inf), _seconds(claims, "iat", -math.inf))
    return Verified(caller, not_before, _seconds(claims, "exp", None))


def _tenant(claims: Claims, trust: Trust) -> str:
    if trust.tenant_claim is None:
        return DEFAULT_TENANT
    tenant = _value(claims, trust.tenant_claim)
    if not isinstance(tenant, str) or not is_tenant(tenant):
        raise InvalidToken(
            f"the claim {trust.tenant_claim} of the token is no name of a tenant: a-z 0-9 . _ -, at most 63"
        )
    return tenant


def _scopes(claims: Claims, trust: Trust) -> frozenset[str]:
    """Return the scopes that this service knows; issuers write them as a text with spaces, or as a list.

    Spaces are U+0020 alone (RFC 6749, section 3.3): what has another one in it is one name, and none that is known.
    """
    granted = _value(claims, trust.scope_claim)
    names = granted.split(" ") if isinstance(granted, str) else granted if isinstance(granted, list) else []
    return frozenset(scope for scope in SCOPES if f"{trust.scope_prefix}{scope}" in names)


def _value(claims: Claims, name: str) -> object:
    """Return a claim by its name, else by its way through claims: ``realm_access.roles``."""
    if name in claims:
        return claims[name]
    value: object = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _seconds(claims: Claims, name: str, default: float | None) -> float:
    value = claims.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise InvalidToken(f"the token has no time {name}")
    return float(min(max(value, -1e18), 1e18))
