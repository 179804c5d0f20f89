"""Addresses that only this machine can reach: what they carry needs no protection."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
