"""Signatures are those of the standard."""

import base64
import hashlib
import hmac

from api.services.webhooks.signature import new_secret, secret_text, signed_headers


def test_the_signature_of_the_standards_own_example() -> None:
    # Example of the specification: secret, id, timestamp and body with their signature.
    headers = signed_headers(
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        b'{"test": 2432232314}',
        timestamp=1614265330,
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_signature_covers_id_time_and_body() -> None:
    secret = new_secret()
    mac = hmac.new(base64.b64decode(secret), b"msg_1.7.{}", hashlib.sha256).digest()
    assert (
        signed_headers(secret, "msg_1", b"{}", timestamp=7)["webhook-signature"]
        == f"v1,{base64.b64encode(mac).decode()}"
    )


def test_secrets_are_long_and_never_the_same() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(base64.b64decode(secret)) for secret in secrets} == {32}
    assert secret_text("YQ==") == "whsec_YQ=="
