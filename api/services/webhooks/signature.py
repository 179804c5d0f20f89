"""Signatures of Standard Webhooks: what a receiver knows a message by.

A signature is ``v1,`` and the base64 of HMAC-SHA256 over ``id.timestamp.body`` with the secret as the key.

References
----------
https://github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md, "Signature scheme".
"""

import base64
import hashlib
import hmac
import secrets

_PREFIX = "whsec_"
_SECRET_BYTES = 32


def new_secret() -> str:
    """Return a secret that there has never been: 256 random bits in base64, as the store keeps it."""
    return base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def secret_text(secret: str) -> str:
    """Return what the receiver is given, and the libraries of the standard accept."""
    return _PREFIX + secret


def signed_headers(secret: str, message_id: str, body: bytes, *, timestamp: int) -> dict[str, str]:
    """Return the headers of a message; ``timestamp`` is that of the attempt, in seconds since the epoch."""
    content = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(base64.b64decode(secret), content, hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
