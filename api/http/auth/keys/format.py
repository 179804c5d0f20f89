"""What a key looks like: ``shardplan_<id>_<secret>``, so that people and scanners of leaked secrets know one.

A secret has 256 random bits. It cannot be guessed, so one round of SHA-256 hides it as well as a slow hash hides a
password, and costs a microsecond where a slow hash would cost every request milliseconds.
"""

import hashlib
import hmac
import re
import secrets
import string
from dataclasses import dataclass, field

_ALPHABET = string.digits + string.ascii_letters
_ID_BYTES = 6
_SECRET_LENGTH = 43  # 62**43 > 2**256
_FORM = re.compile(r"shardplan_([0-9a-f]{12})_([0-9A-Za-z]{43})")


@dataclass(frozen=True, slots=True)
class Key:
    """A key in the open; its secret is never shown by accident."""

    id: str
    secret: str = field(repr=False)

    @classmethod
    def new(cls) -> "Key":
        """Make a key that there has never been."""
        letters = [secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH)]
        return cls(secrets.token_hex(_ID_BYTES), "".join(letters))

    @classmethod
    def parse(cls, text: str) -> "Key | None":
        """Return the key that a text is; ``None`` if it is none."""
        found = _FORM.fullmatch(text)
        return None if found is None else cls(*found.groups())

    @property
    def text(self) -> str:
        """What its owner keeps and sends."""
        return f"shardplan_{self.id}_{self.secret}"

    @property
    def digest(self) -> str:
        """What the database keeps of the secret."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def has_digest(self, digest: str) -> bool:
        """Whether this is the key of a digest; takes equally long whatever differs."""
        return hmac.compare_digest(self.digest, digest)
