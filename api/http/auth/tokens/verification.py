"""Verifies the tokens that requests show (JWT, RFC 7519): from memory for a minute, so that fetches stay fast."""

import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jwt

from api.http.auth.principal import Principal, bad_token
from api.http.auth.tokens.claims import InvalidToken, Verified, verified
from api.http.auth.tokens.issuer import key_fetcher
from api.http.auth.tokens.jwks import KeySet, KeysUnavailable, VerificationKey
from api.http.auth.tokens.trusted_issuer import ALGORITHMS, Trust
from api.services.errors import ApiError
from api.settings import Settings

#: A token whose key its issuer has withdrawn is refused after this time at the latest, once the keys were read again.
REMEMBERED_SECONDS = 60.0
MAX_REMEMBERED = 10_000
MAX_LENGTH = 16 * 1024
_TYPES = (None, "jwt", "at+jwt", "application/at+jwt")
#: The signature alone: everything else is checked here, by a clock that tests can set.
_OPTIONS: Any = {
    "verify_signature": True,
    **{f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")},
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    verified: Verified
    verified_at: float  # by the monotonic clock


class TokenVerifier:
    """What is known of tokens, by their digests: they are secrets, and kept nowhere. To be used in the event loop."""

    def __init__(
        self,
        trust: Trust,
        keys: KeySet,
        *,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._trust, self._keys, self._clock, self._ticks = trust, keys, clock, ticks
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    @classmethod
    def of(cls, settings: Settings) -> "TokenVerifier | None":
        """Return what verifies tokens of the issuer of the settings, where there is one. Raises ``UnusableIssuer``."""
        trust = Trust.of(settings)
        return None if trust is None else cls(trust, KeySet(key_fetcher(trust.issuer, trust.jwks_url)))

    async def caller(self, token: str) -> Principal | ApiError:
        digest = hashlib.sha256(token.encode()).digest()
        known = self._known.get(digest)
        try:
            if known is None or self._ticks() - known.verified_at >= REMEMBERED_SECONDS:
                known = _Known(await self._verified(token), self._ticks())
                self._known[digest] = known
                self._known.move_to_end(digest)
                if len(self._known) > MAX_REMEMBERED:
                    self._known.popitem(last=False)
            known.verified.check(self._clock())
        except InvalidToken as error:
            self._known.pop(digest, None)
            return bad_token(str(error))
        except KeysUnavailable:
            return ApiError("issuer-unavailable")
        return known.verified.caller

    async def _verified(self, token: str) -> Verified:
        algorithm, kid = self._header(token)
        key = await self._keys.key(kid)
        if key is None:
            raise InvalidToken("the issuer has no key of the id (kid) that the token names")
        _check_key(key, algorithm)
        try:
            claims = jwt.decode(token, key=key.material, algorithms=[algorithm], options=_OPTIONS)
        except jwt.InvalidSignatureError:
            raise InvalidToken("the signature of the token is wrong") from None
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise InvalidToken("the token cannot be read") from None
        return verified(claims, self._trust)

    def _header(self, token: str) -> tuple[str, str]:
        """Return the algorithm and the id of the key of a token, both as its maker states them."""
        if len(token) > MAX_LENGTH:
            raise InvalidToken(f"the token has more than {MAX_LENGTH} characters")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise InvalidToken("the token cannot be read") from None
        algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ")
        if algorithm not in self._trust.algorithms:
            raise InvalidToken(f"the token is signed in another way than with {', '.join(self._trust.algorithms)}")
        if "crit" in header or (kind.lower() if isinstance(kind, str) else kind) not in _TYPES:
            raise InvalidToken("the token is of a kind that is not known here")
        if not isinstance(kid, str):
            raise InvalidToken("the token does not name its key (kid)")
        return str(algorithm), kid


def _check_key(key: VerificationKey, algorithm: str) -> None:
    """Reject a signature of another kind than its key, whatever the token says."""
    kind, curve = ALGORITHMS[algorithm]
    if key.kind != kind or curve not in (None, key.curve) or key.algorithm not in (None, algorithm):
        raise InvalidToken("the key that the token names is not for this kind of signature")
