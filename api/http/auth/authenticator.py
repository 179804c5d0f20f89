"""Finds out who sends a request: by a key of this service, or by a token of an issuer that it trusts."""

from api.http.auth.keys.verification import ApiKeyVerifier
from api.http.auth.principal import Principal
from api.http.auth.tokens.verification import TokenVerifier
from api.services.errors import ApiError


class Authenticator:
    """All that a header ``Authorization`` may show. To be used in the event loop."""

    def __init__(self, keys: ApiKeyVerifier, tokens: TokenVerifier | None) -> None:
        """``tokens`` is ``None`` where no issuer is trusted."""
        self._keys, self._tokens = keys, tokens

    async def caller(self, authorization: str | None) -> Principal | ApiError:
        """Return who shows this header."""
        if self._tokens is not None and authorization is not None:
            scheme, _, credentials = authorization.partition(" ")
            token = credentials.strip()
            if scheme.lower() == "bearer" and token.count(".") == 2:
                return await self._tokens.caller(token)
        return await self._keys.caller(authorization)
