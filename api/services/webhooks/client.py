"""Sends one message: the name is resolved once, the addresses are checked, and a checked one is connected to."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import httpx

from api.services.webhooks.targets import HostAllowList, Target, TargetRefused

CAP_SECONDS = 10.0  # of one attempt, the look for the name included
_MAX_ADDRESSES = 3  # that are tried one after the other

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a message. Of the answer itself nothing but its status is read."""

    status: int | None = None
    error: str | None = None  # in one word; None of a status of 200 to 299


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name. Raises ``OSError``."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class WebhookClient:
    """Sends messages to addresses that the list allows."""

    def __init__(
        self,
        allowed: HostAllowList,
        *,
        resolve: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
        cap_seconds: float = CAP_SECONDS,
    ) -> None:
        """``tls`` says whom to trust; by default whom the system trusts."""
        self._allowed, self._resolve, self._cap_seconds = allowed, resolve, cap_seconds
        self._tls = tls

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send one message and say what came of it; never raises for what a receiver or a network does."""
        try:
            async with asyncio.timeout(self._cap_seconds):
                target = self._allowed.check(url)
                return await self._send(target, await self._addresses(target), headers, body)
        except TargetRefused:
            return Answer(error="refused-target")
        except (TimeoutError, httpx.TimeoutException):
            return Answer(error="time-out")
        except httpx.HTTPError as error:
            return Answer(error="tls" if _is_tls(error) else "connection")
        except OSError:  # from looking for the name
            return Answer(error="unknown-host")

    async def _addresses(self, target: Target) -> Sequence[str]:
        """Return the checked addresses of a target; a name of which one is refused is refused."""
        if target.address is not None:
            return [target.host]
        found = await self._resolve(target.host, target.port)
        for address in found:
            self._allowed.check_address(address)
        return found

    async def _send(self, target: Target, addresses: Sequence[str], headers: Mapping[str, str], body: bytes) -> Answer:
        # An address that is silent leaves time for the next one.
        timeout = httpx.Timeout(self._cap_seconds, connect=self._cap_seconds / (_MAX_ADDRESSES + 1))
        # One client for each message, without proxies of the environment, which would connect where they like; nor is
        # a connection used twice, since those to one address may be for different names.
        async with httpx.AsyncClient(
            verify=await self._context(target), trust_env=False, follow_redirects=False, timeout=timeout
        ) as client:
            last: httpx.ConnectError | httpx.ConnectTimeout | None = None
            for address in addresses[:_MAX_ADDRESSES]:
                host = f"[{address}]" if ":" in address else address
                try:
                    async with client.stream(
                        "POST",
                        f"{target.scheme}://{host}:{target.port}{target.path}",
                        content=body,
                        headers={**headers, "Host": target.host_header, "Accept-Encoding": "identity"},
                        extensions={"sni_hostname": target.host},
                    ) as response:
                        return _answer(response.status_code)
                except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                    if _is_tls(error):
                        raise
                    last = error
            if last is None:
                raise OSError("the name has no address")
            raise last

    async def _context(self, target: Target) -> ssl.SSLContext | bool:
        """Return whom to trust; reading all that the system trusts takes a while, so it is done once, in a thread."""
        if target.scheme == "http":
            return False  # there is no TLS, and nothing to trust
        if self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        return self._tls


def _answer(status: int) -> Answer:
    if 200 <= status < 300:
        return Answer(status)
    return Answer(status, "gone" if status == 410 else "redirect" if 300 <= status < 400 else "status")


def _is_tls(error: BaseException | None) -> bool:
    """Whether an error is one of TLS, which the libraries wrap several times."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
