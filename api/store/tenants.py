"""Names of tenants: who share a service and see nothing of each other."""

import re

#: Of whom everything is that nobody else is named for: all of it, where nobody is asked who they are.
DEFAULT_TENANT = "default"
TENANT_PATTERN = r"[a-z0-9][a-z0-9._-]{0,62}"
_TENANT = re.compile(TENANT_PATTERN)


def is_tenant(name: str) -> bool:
    """Whether a tenant can have this name."""
    return _TENANT.fullmatch(name) is not None


def tenant_key(tenant: str, key: str) -> str:
    """Return the key of a tenant's thing, where those of all tenants are kept together."""
    return f"{tenant}/{key}"


def tenant_and_key(kept: str) -> tuple[str, str]:
    """Return what ``tenant_key`` was given; names of tenants have no slash."""
    tenant, _, key = kept.partition("/")
    return tenant, key
