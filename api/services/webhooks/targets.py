"""Where messages may go: an allow-list of hosts, and addresses that are refused whatever a name says.

Without these checks, a caller who may add a webhook could have the server send requests to its own network: to itself,
to neighbours that trust it, to the metadata of a cloud. So nothing is allowed unless ``SHARDPLAN_WEBHOOK_HOSTS`` lists
it, and what is not reached by the public internet is refused unless the list names its address or network.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

MAX_URL_LENGTH = 2000
_PORTS = {"https": 443, "http": 80}
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"({_LABEL}\.)*{_LABEL}")
#: What resolvers read as a number: 127.1, 0x7f.1, 2130706433, 0177.0.0.1.
_NUMBER = re.compile(r"([0-9]+|0x[0-9a-f]*)")
_PLAIN_URL = re.compile(r"[!-\[\]-~]+")  # visible ASCII but the backslash, which some read as a slash

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Refused although ``ipaddress`` may call them global: forms that carry an IPv4 address within, and a cloud's agent.
_REFUSED_NETWORKS = [
    ipaddress.ip_network(text)
    for text in (
        "::/96",  # IPv4-compatible
        "::ffff:0:0/96",  # IPv4-mapped
        "64:ff9b::/96",  # NAT64, RFC 6052
        "64:ff9b:1::/48",  # NAT64 of a network's own, RFC 8215
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "fec0::/10",  # site-local
        "192.0.0.0/24",  # protocol assignments
        "168.63.129.16/32",  # Azure's agent of virtual machines
    )
]


class UnusableAllowList(ValueError):
    """The list of hosts cannot be read; the message is for people."""


class TargetRefused(Exception):
    """Nothing is sent there; the message is for people and does not repeat the address."""


@dataclass(frozen=True, slots=True)
class Target:
    """An address that was read strictly: everybody agrees on what its parts are."""

    scheme: str  # https or http
    host: str  # a name, or an address without brackets
    port: int
    path: str  # with its query

    @property
    def address(self) -> Address | None:
        """The host where it is an address."""
        return _address(self.host)

    @property
    def host_header(self) -> str:
        """What HTTP calls the host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def read_url(url: str) -> Target:
    """Read an address. Raises ``TargetRefused`` for what is not written plainly."""
    if len(url) > MAX_URL_LENGTH or _PLAIN_URL.fullmatch(url) is None:
        raise TargetRefused(f"an address has at most {MAX_URL_LENGTH} visible ASCII characters, and no backslash")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise TargetRefused("the address cannot be read") from None
    if parts.scheme not in _PORTS:
        raise TargetRefused("an address begins with https:// (or http://, where the list of hosts says so)")
    if "@" in parts.netloc or "#" in url:
        raise TargetRefused("an address has no user, no password and no fragment")
    if "[" in parts.netloc and not isinstance(_address(host), ipaddress.IPv6Address):
        raise TargetRefused("brackets are for addresses of IPv6")
    if port == 0:
        raise TargetRefused("an address has no port 0")
    path = url[len(parts.scheme) + 3 + len(parts.netloc) :] or "/"
    if not path.startswith("/"):
        path = f"/{path}"
    return Target(parts.scheme, _host(host), port or _PORTS[parts.scheme], path)


@dataclass(frozen=True, slots=True)
class _Entry:
    scheme: str
    port: int
    name: str | None = None
    with_subdomains: bool = False
    network: Network | None = None

    def allows(self, target: Target) -> bool:
        if (target.scheme, target.port) != (self.scheme, self.port):
            return False
        if self.network is not None:
            return target.address is not None and target.address in self.network
        assert self.name is not None
        return target.host.endswith(f".{self.name}") if self.with_subdomains else target.host == self.name


class HostAllowList:
    """What ``SHARDPLAN_WEBHOOK_HOSTS`` says, such as ``hooks.example.com, *.ads.internal:8443, 10.2.0.0/16``."""

    def __init__(self, text: str | None) -> None:
        """Read the list. Raises ``UnusableAllowList``."""
        self._entries = [_entry(item) for item in re.split(r"[\s,]+", text or "") if item]

    def check(self, url: str) -> Target:
        """Return where an address leads. Raises ``TargetRefused``."""
        target = read_url(url)
        if not self._entries:
            raise TargetRefused("this server sends no webhooks: SHARDPLAN_WEBHOOK_HOSTS lists no host")
        if not any(entry.allows(target) for entry in self._entries):
            raise TargetRefused("SHARDPLAN_WEBHOOK_HOSTS does not list this host with this scheme and port")
        if target.address is not None:
            self.check_address(target.host)
        return target

    def check_address(self, text: str) -> None:
        """Reject an address that a name leads to, unless it is public or listed. Raises ``TargetRefused``."""
        address = ipaddress.ip_address(text)
        if any(entry.network is not None and address in entry.network for entry in self._entries):
            return
        is_public = address.is_global and not address.is_multicast and not address.is_reserved
        if not is_public or any(address in network for network in _REFUSED_NETWORKS):
            raise TargetRefused(
                "the host is at an address that is not public, and SHARDPLAN_WEBHOOK_HOSTS lists it not"
            )


def _host(host: str) -> str:
    """Return a host in the one form that it has. Raises ``TargetRefused``."""
    address = _address(host)
    if address is not None:
        return str(address)
    if _NAME.fullmatch(host) is None or len(host) > 253 or _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise TargetRefused("a host is a name of a-z 0-9 - and dots, or an address in its usual form")
    return host


def _address(text: str) -> Address | None:
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def _entry(text: str) -> _Entry:
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "https", text
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:./]+)\]|([^:\[\]]+))(?::([0-9]{1,5}))?", rest)
    if scheme not in _PORTS or match is None or not 0 < (port := int(match[3] or _PORTS[scheme])) < 65536:
        raise _unusable(text)
    host = (match[1] or match[2]).lower()
    try:
        if match[1] or "/" in host or _address(host) is not None:
            return _Entry(scheme, port, network=ipaddress.ip_network(host))
        name = host.removeprefix("*.")
        return _Entry(scheme, port, name=_host(name), with_subdomains=name != host)
    except (ValueError, TargetRefused):
        raise _unusable(text) from None


def _unusable(text: str) -> UnusableAllowList:
    forms = "hooks.example.com, *.example.com:8443, http://hooks.internal, 10.2.0.0/16 or [fd00::/8]:8443"
    return UnusableAllowList(f"SHARDPLAN_WEBHOOK_HOSTS: {text[:80]!r} is no host; write it like {forms}")
