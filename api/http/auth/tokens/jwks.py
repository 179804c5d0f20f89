"""The keys that an issuer signs its tokens with, as it publishes them (JWKS, RFC 7517)."""

import asyncio
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt

#: Keys are asked for again once they are so old; those that are gone by then verify nothing any more.
REFRESH_SECONDS = 3600.0
#: The issuer is asked no more often, whatever keys tokens name.
MIN_SECONDS_BETWEEN = 10.0
MAX_KEYS = 100
_MIN_RSA_BITS = 2048
_KINDS = {"RSA", "EC", "OKP"}

log = logging.getLogger(__name__)


class KeysUnavailable(Exception):
    """The issuer does not answer, or with something else than keys; the message is for the log."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key."""

    kind: str  # RSA, EC or OKP
    curve: str | None  # of EC and OKP
    algorithm: str | None  # the only one that it is for, where its issuer says so
    material: Any  # what jwt verifies with


class KeySet:
    """The keys by their ids (``kid``). To be used in the event loop."""

    def __init__(self, fetch: Callable[[], Awaitable[bytes]], *, ticks: Callable[[], float] = time.monotonic) -> None:
        """``fetch`` asks the issuer, and raises ``KeysUnavailable``."""
        self._fetch, self._ticks = fetch, ticks
        self._keys: Mapping[str, VerificationKey] = {}
        self._asked_at = self._had_at = -math.inf
        self._has_failed = False
        self._asking: asyncio.Task[None] | None = None

    async def key(self, kid: str) -> VerificationKey | None:
        """Return a key; ``None`` if the issuer has none of this id.

        Raises
        ------
        KeysUnavailable
            The key is not known, and the issuer could not be asked.
        """
        found = self._keys.get(kid)
        if found is not None:
            if self._ticks() - self._had_at > REFRESH_SECONDS:
                self._ask()  # requests after this one are verified with what it brings
            return found
        asking = self._ask()
        if asking is not None:
            await asyncio.shield(asking)
        found = self._keys.get(kid)
        if found is None and self._has_failed:
            raise KeysUnavailable
        return found

    def _ask(self) -> asyncio.Task[None] | None:
        """Ask the issuer, unless somebody does already or did a moment ago."""
        if self._asking is None and self._ticks() - self._asked_at >= MIN_SECONDS_BETWEEN:
            self._asked_at = self._ticks()
            self._asking = asyncio.create_task(self._read())
            self._asking.add_done_callback(self._asked)
        return self._asking

    def _asked(self, _: object) -> None:
        self._asking = None

    async def _read(self) -> None:
        try:
            keys = parse_keys(await self._fetch())
        except KeysUnavailable as error:
            self._has_failed = True
            log.warning("the keys of the issuer cannot be had; those that are known go on: %s", error)
        else:
            self._keys, self._had_at, self._has_failed = keys, self._ticks(), False


def parse_keys(content: bytes) -> dict[str, VerificationKey]:
    """Return the keys of a JWKS document that tokens can be verified with. Raises ``KeysUnavailable``."""
    try:
        listed = json.loads(content)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise KeysUnavailable("the answer is no set of keys") from None
    if not isinstance(listed, list) or len(listed) > MAX_KEYS:
        raise KeysUnavailable(f"the answer is no list of at most {MAX_KEYS} keys")
    found = {item["kid"]: key for item in listed if (key := _parse(item)) is not None}
    if not found:
        raise KeysUnavailable("none of the keys can verify a token")
    return found


def _parse(item: object) -> VerificationKey | None:
    """Return a key; ``None`` of one that is secret, weak, for something else, or that nothing is known of."""
    try:
        if not isinstance(item, dict) or not isinstance(item.get("kid"), str) or item.get("kty") not in _KINDS:
            return None
        is_for_signatures = item.get("use", "sig") == "sig" and "verify" in item.get("key_ops", ["verify"])
        if not is_for_signatures or "d" in item:
            return None
        material = jwt.PyJWK.from_dict(item).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if item["kty"] == "RSA" and material.key_size < _MIN_RSA_BITS:
        log.warning("a key of the issuer has less than %s bits and is not used", _MIN_RSA_BITS)
        return None
    return VerificationKey(kind=item["kty"], curve=item.get("crv"), algorithm=item.get("alg"), material=material)
