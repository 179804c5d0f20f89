"""Which tokens a server trusts, and what it reads in them."""

import re
from dataclasses import dataclass

from api.http.auth.tokens.issuer import is_trustworthy
from api.settings import Settings

#: Signatures that a verifier cannot forge, by the kind of their keys and their curve. ``none`` and those of
#: shared secrets (HS256) stand here nowhere: a public key must never be taken for a secret.
ALGORITHMS: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}


class UnusableIssuer(ValueError):
    """The settings of tokens contradict each other; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """One issuer, and how its tokens say who may do what."""

    issuer: str
    audience: str
    jwks_url: str | None
    algorithms: tuple[str, ...]
    tenant_claim: str | None
    scope_claim: str
    scope_prefix: str

    @classmethod
    def of(cls, settings: Settings) -> "Trust | None":
        """Return what the settings say; ``None`` if no issuer is trusted. Raises ``UnusableIssuer``."""
        if settings.oidc_issuer is None:
            if settings.oidc_audience is not None or settings.oidc_jwks_url is not None:
                raise UnusableIssuer("SHARDPLAN_OIDC_AUDIENCE and _JWKS_URL mean nothing without SHARDPLAN_OIDC_ISSUER")
            return None
        if settings.auth != "keys":
            raise UnusableIssuer("SHARDPLAN_OIDC_ISSUER is set, and no key is required: set SHARDPLAN_AUTH=keys")
        if not settings.oidc_audience:
            raise UnusableIssuer(
                "set SHARDPLAN_OIDC_AUDIENCE: without it tokens of the issuer for other services would be taken here"
            )
        for url in filter(None, (settings.oidc_issuer, settings.oidc_jwks_url)):
            if not is_trustworthy(url):
                raise UnusableIssuer("SHARDPLAN_OIDC_ISSUER and _JWKS_URL are addresses with https://")
        algorithms = tuple(re.findall(r"[^\s,]+", settings.oidc_algorithms))
        if not algorithms or not set(algorithms) <= set(ALGORITHMS):
            raise UnusableIssuer(f"SHARDPLAN_OIDC_ALGORITHMS takes, with commas, {', '.join(ALGORITHMS)}")
        return cls(
            issuer=settings.oidc_issuer,
            audience=settings.oidc_audience,
            jwks_url=settings.oidc_jwks_url,
            algorithms=algorithms,
            tenant_claim=settings.oidc_tenant_claim or None,
            scope_claim=settings.oidc_scope_claim,
            scope_prefix=settings.oidc_scope_prefix or "",
        )
