"""Keys of callers as documents."""

from typing import Any

from api.schemas.access import CreatedKey, KeyDocument
from api.schemas.timestamps import moment
from api.store.access.keys import ApiKeyRecord


def key_document(record: ApiKeyRecord) -> KeyDocument:
    """Return what clients may see of a key."""
    return KeyDocument(**_fields(record))


def created_key(record: ApiKeyRecord, text: str) -> CreatedKey:
    """Return a new key with its secret."""
    return CreatedKey(key=text, **_fields(record))


def _fields(record: ApiKeyRecord) -> dict[str, Any]:
    times = ("created_at", "expires_at", "last_used_at", "revoked_at")
    return {
        "id": record.id,
        "name": record.name,
        "tenant": record.tenant,
        "scopes": list(record.scopes),
        **{name: moment(getattr(record, name)) for name in times},
    }
