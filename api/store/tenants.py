"""Names of tenants: they share a service, and see nothing of each other."""

import re

#: Has what no tenant is named for: everything, if the service asks for no keys.
DEFAULT_TENANT = "default"
_TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def is_tenant(name: str) -> bool:
    return _TENANT.fullmatch(name) is not None
