"""An issuer of tokens on this machine, with keys of its own."""

import base64
import contextlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

AUDIENCE = "shardplan"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK_RSA = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()


def jwk(kid: str, key: Any, **more: object) -> dict[str, object]:
    """A public key as an issuer publishes it."""
    algorithms = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256", ed25519.Ed25519PrivateKey: "EdDSA"}
    (name,) = [name for kind, name in algorithms.items() if isinstance(key, kind)]
    public = jwt.get_algorithm_by_name(name).to_jwk(key.public_key(), as_dict=True)
    return {**public, "kid": kid, "use": "sig", **more}


def public_pem(key: Any) -> bytes:
    """A public key as a text, which an attacker may sign with as if it were a shared secret."""
    return bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def claims(issuer: str, **changes: object) -> dict[str, object]:
    """What a token says; ``None`` leaves a claim out."""
    now = time.time()
    message = {"iss": issuer, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600, "scope": "read", **changes}
    return {name: value for name, value in message.items() if value is not None}


def signed(message: dict[str, object], key: Any = RSA, *, alg: str = "RS256", **header: object) -> str:
    """A token."""
    return jwt.encode(message, key, algorithm=alg, headers={"kid": "one", **header})


def forged(
    message: dict[str, object],
    header: dict[str, object],
    signature: bytes = b"",
    *,
    secret: bytes | None = None,
    bits: int = 256,
) -> str:
    """A token of parts that no library would put together; signed with a shared secret, where one is given."""
    text = ".".join(_encoded(json.dumps(part).encode()) for part in (header, message))
    if secret is not None:
        signature = hmac.digest(secret, text.encode(), f"sha{bits}")
    return f"{text}.{_encoded(signature)}"


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


class Issuer:
    """Publishes its keys over HTTP, and counts how often it is asked."""

    def __init__(self) -> None:
        self.keys = [jwk("one", RSA, alg="RS256"), jwk("two", EC)]
        self.is_down = False
        self.num_asked = 0
        self.configuration: dict[str, object] | None = None
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.num_asked += self.path == "/keys"
                document = {"keys": issuer.keys} if self.path == "/keys" else issuer.reported()
                body = json.dumps(document).encode()
                self.send_response(503 if issuer.is_down else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def reported(self) -> dict[str, object]:
        """What its configuration says."""
        return self.configuration or {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}

    @contextlib.contextmanager
    def running(self) -> Iterator["Issuer"]:
        """Answer while the block runs."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def settings(self, **changes: object) -> dict[str, object]:
        """Settings of a service that trusts it."""
        return {"auth": "keys", "oidc_issuer": self.url, "oidc_audience": AUDIENCE, **changes}
