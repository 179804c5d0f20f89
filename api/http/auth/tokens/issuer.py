"""Asks an issuer of tokens for its keys: at an address that was set, or at the one that it publishes (discovery)."""

import json
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import httpx

from api.http.auth.loopback import is_loopback
from api.http.auth.tokens.jwks import KeysUnavailable

TIMEOUT_SECONDS = 5.0
MAX_BYTES = 1024**2
_DISCOVERY = "/.well-known/openid-configuration"


def key_fetcher(issuer: str, jwks_url: str | None) -> Callable[[], Awaitable[bytes]]:
    """Return what asks for the keys of an issuer, and raises ``KeysUnavailable``."""

    async def fetch() -> bytes:
        # Redirects are not followed: keys come from where they were said to be, or not at all.
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False) as client:
            url = jwks_url
            if url is None:
                url = _published(await _get(client, issuer.rstrip("/") + _DISCOVERY), issuer)
            return await _get(client, url)

    return fetch


def is_trustworthy(url: str) -> bool:
    """Whether no machine on the way can change what an address answers: TLS, or this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return (parts.scheme == "https" and bool(host)) or (parts.scheme == "http" and is_loopback(host))


def _published(content: bytes, issuer: str) -> str:
    """Return the address that an issuer publishes; of the issuer that is meant, and none that others could answer."""
    try:
        document = json.loads(content)
        named, url = document["issuer"], document["jwks_uri"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise KeysUnavailable("the configuration of the issuer cannot be read") from None
    if named != issuer or not isinstance(url, str) or not is_trustworthy(url):
        raise KeysUnavailable("the configuration is of another issuer, or names keys that others could replace")
    return url


async def _get(client: httpx.AsyncClient, url: str) -> bytes:
    content = b""
    try:
        async with client.stream("GET", url, headers={"Accept": "application/json"}) as answer:
            if answer.status_code != 200:
                raise KeysUnavailable(f"{url} answers with status {answer.status_code}")
            async for chunk in answer.aiter_bytes():
                content += chunk
                if len(content) > MAX_BYTES:
                    raise KeysUnavailable(f"{url} answers with more than {MAX_BYTES} bytes")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise KeysUnavailable(f"{url}: {type(error).__name__} {error}") from error
    return content
