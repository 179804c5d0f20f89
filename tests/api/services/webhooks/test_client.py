"""One message: to the address that was checked, and to no other; what answers is looked at as little as can be."""

import asyncio
import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from api.services.webhooks.client import CAP_SECONDS, Answer, WebhookClient, resolve
from api.services.webhooks.targets import HostAllowList
from tests.support.service.receivers import receiving
from tests.support.thorough import thorough


class Names:
    """A resolver that answers as it is told, one answer after the other, and counts."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers, self.asked = list(answers), []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers.pop(0)


def send(sender: WebhookClient, url: str, body: bytes = b"{}") -> Answer:
    return asyncio.run(sender.send(url, {"webhook-id": "msg_1"}, body))


def test_a_message_arrives_with_its_name_at_the_checked_address() -> None:
    names = Names(["127.0.0.1"])
    with receiving() as receiver:
        allowed = HostAllowList(f"http://hooks.test:{receiver.port}, 127.0.0.0/8")
        url = f"http://hooks.test:{receiver.port}/hook?a=%20b"
        assert send(WebhookClient(allowed, resolve=names), url, b'{"a":1}') == Answer(204)
        (message,) = receiver.messages
    assert (message.path, message.body) == ("/hook?a=%20b", b'{"a":1}')
    assert message.headers["host"] == f"hooks.test:{receiver.port}"
    assert message.headers["webhook-id"] == "msg_1"
    assert names.asked == [("hooks.test", receiver.port)]


def test_a_name_that_leads_home_is_refused_before_anything_is_connected_to() -> None:
    with receiving() as receiver:
        sender = WebhookClient(HostAllowList(f"http://hooks.test:{receiver.port}"), resolve=Names(["127.0.0.1"]))
        assert send(sender, f"http://hooks.test:{receiver.port}/") == Answer(error="refused-target")
        assert receiver.messages == []


def test_one_address_among_many_that_is_refused_refuses_the_name() -> None:
    with receiving("127.0.0.2") as receiver:
        allowed = HostAllowList(f"http://hooks.test:{receiver.port}, 127.0.0.2")
        sender = WebhookClient(allowed, resolve=Names(["127.0.0.2", "169.254.169.254"]))
        assert send(sender, f"http://hooks.test:{receiver.port}/") == Answer(error="refused-target")
        assert receiver.messages == []


def test_a_name_that_changes_after_the_check_changes_nothing() -> None:
    """DNS rebinding: the second answer would be an address that is not listed."""
    names = Names(["127.0.0.2"], ["127.0.0.1"], ["127.0.0.1"])
    with receiving("127.0.0.2") as listed, receiving("127.0.0.1", port=listed.port) as inside:
        sender = WebhookClient(HostAllowList(f"http://hooks.test:{listed.port}, 127.0.0.2/32"), resolve=names)
        assert send(sender, f"http://hooks.test:{listed.port}/") == Answer(204)
        assert (len(listed.messages), inside.messages, len(names.asked)) == (1, [], 1)
        # The next message asks again, and is refused.
        assert send(sender, f"http://hooks.test:{listed.port}/") == Answer(error="refused-target")
        assert (len(listed.messages), inside.messages) == (1, [])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    with receiving() as inside:

        def answer(_number: int) -> tuple[int, dict[str, str]]:
            return status, {"Location": inside.url}

        with receiving(answer=answer) as receiver:
            hosts = f"http://127.0.0.1:{receiver.port}, http://127.0.0.1:{inside.port}"
            assert send(WebhookClient(HostAllowList(hosts)), receiver.url) == Answer(status, "redirect")
            assert (len(receiver.messages), inside.messages) == (1, [])


@pytest.mark.parametrize(
    ("status", "error"), [(200, None), (202, None), (400, "status"), (410, "gone"), (503, "status")]
)
def test_the_status_is_all_that_is_preserved_of_an_answer(status: int, error: str | None) -> None:
    with receiving(answer=lambda _: (status, {"X-Large": "x" * 1000})) as receiver:
        assert send(WebhookClient(HostAllowList(f"http://127.0.0.1:{receiver.port}")), receiver.url) == Answer(
            status, error
        )


def test_a_receiver_that_takes_its_time_is_left_at_the_cap() -> None:
    with receiving(slowness_seconds=2.0) as receiver:
        sender = WebhookClient(HostAllowList(f"http://127.0.0.1:{receiver.port}"), cap_seconds=0.3)
        assert send(sender, receiver.url) == Answer(error="time-out")
    assert CAP_SECONDS == 10.0


@thorough
def test_a_receiver_that_drips_its_answer_is_left_at_the_cap() -> None:
    """Each byte comes in time, all of them do not: the cap is one of the whole attempt."""

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in b"HTTP/1.1 200 OK\r\n" * 2:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)
        writer.close()

    async def attempt() -> Answer:
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            sender = WebhookClient(HostAllowList(f"http://127.0.0.1:{port}"), cap_seconds=0.4)
            return await sender.send(f"http://127.0.0.1:{port}/", {}, b"")
        finally:
            server.close()
            await asyncio.sleep(2)  # until it has dripped, and closes

    assert asyncio.run(attempt()) == Answer(error="time-out")


def test_a_long_body_of_an_answer_is_not_read() -> None:
    sent = 0

    async def pour(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
                sent += 65536
        except OSError:
            writer.close()

    async def attempt() -> Answer:
        server = await asyncio.start_server(pour, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        answer = await WebhookClient(HostAllowList(f"http://127.0.0.1:{port}")).send(
            f"http://127.0.0.1:{port}/", {}, b""
        )
        server.close()
        await asyncio.sleep(0.1)
        return answer

    assert asyncio.run(attempt()) == Answer(200)
    assert sent < 50_000_000


def test_no_one_there() -> None:
    with receiving() as receiver:
        pass
    sender = WebhookClient(HostAllowList(f"http://127.0.0.1:{receiver.port}"))
    assert send(sender, receiver.url) == Answer(error="connection")


def test_another_address_of_a_name_is_tried_where_no_one_is_at_the_first() -> None:
    with receiving("127.0.0.3") as receiver:
        allowed = HostAllowList(f"http://hooks.test:{receiver.port}, 127.0.0.0/8")
        sender = WebhookClient(allowed, resolve=Names(["127.0.0.2", "127.0.0.3"]))
        assert send(sender, f"http://hooks.test:{receiver.port}/") == Answer(204)


def test_names_that_no_one_has() -> None:
    async def unknown(_host: str, _port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    assert send(WebhookClient(HostAllowList("hooks.test"), resolve=unknown), "https://hooks.test/") == Answer(
        error="unknown-host"
    )
    assert (
        send(WebhookClient(HostAllowList("hooks.test"), resolve=Names([])), "https://hooks.test/").error
        == "unknown-host"
    )
    assert "127.0.0.1" in asyncio.run(resolve("localhost", 80))


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with receiving() as receiver:
        assert send(WebhookClient(HostAllowList(f"http://127.0.0.1:{receiver.port}")), receiver.url) == Answer(204)


def certificate(folder: Path, name: str) -> Path:
    """A key and a certificate for a name, signed by itself, in one file."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("makes certificates with openssl, which is not installed")
    key, cert, both = folder / "key.pem", folder / "cert.pem", folder / f"{name}.pem"
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    what = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run([program, *what, *subject, "-keyout", key, "-out", cert], check=True, capture_output=True)
    both.write_bytes(key.read_bytes() + cert.read_bytes())
    return both


def test_tls_is_asked_for_the_name_and_not_for_the_address(tmp_path: Path) -> None:
    mine = certificate(tmp_path, "hooks.test")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(mine)
    asked: list[str | None] = []
    server.sni_callback = lambda _socket, name, _context: asked.append(name)
    trusting = ssl.create_default_context(cafile=mine)
    with receiving(tls=server) as receiver:
        allowed = HostAllowList(f"hooks.test:{receiver.port}, other.test:{receiver.port}, 127.0.0.0/8")

        def attempt(name: str, tls: ssl.SSLContext | None) -> Answer:
            sender = WebhookClient(allowed, resolve=Names(["127.0.0.1"]), tls=tls)
            return send(sender, f"https://{name}:{receiver.port}/")

        assert attempt("hooks.test", trusting) == Answer(204)
        assert attempt("other.test", trusting) == Answer(error="tls")  # the certificate is for another name
        assert attempt("hooks.test", None) == Answer(error="tls")  # nobody here trusts it
        assert asked == ["hooks.test", "other.test", "hooks.test"]
        assert len(receiver.messages) == 1


def test_an_address_that_is_silent_leaves_time_for_the_next_one() -> None:
    with receiving("127.0.0.2") as receiver, socket.socket() as silent, contextlib.ExitStack() as full:
        silent.bind(("127.0.0.3", receiver.port))
        silent.listen(0)
        for _ in range(4):  # nobody accepts: once its queue is full, whoever connects hears nothing
            client = full.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.3", receiver.port))
        allowed = HostAllowList(f"http://hooks.test:{receiver.port}, 127.0.0.0/8")
        sender = WebhookClient(allowed, resolve=Names(["127.0.0.3", "127.0.0.2"]), cap_seconds=3.0)
        assert send(sender, f"http://hooks.test:{receiver.port}/") == Answer(204)
