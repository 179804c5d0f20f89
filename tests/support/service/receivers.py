"""Receivers of webhooks in the test's process: they remember what they get, and answer as they are told."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Message:
    """What came."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


@dataclass
class Receiver:
    """A server on an address of this machine."""

    address: str
    port: int
    answer: Callable[[int], tuple[int, dict[str, str]]]  # by the number of the message, from 1
    messages: list[Message] = field(default_factory=list)
    slowness_seconds: float = 0.0

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}/hook?team=ads"

    def wait_for(self, number: int, seconds: float = 30.0) -> list[Message]:
        deadline = time.monotonic() + seconds
        while len(self.messages) < number:
            assert time.monotonic() < deadline, f"{len(self.messages)} of {number} messages came"
            time.sleep(0.02)
        return self.messages


def _ok(_number: int) -> tuple[int, dict[str, str]]:
    return 204, {}


@contextlib.contextmanager
def receiving(
    address: str = "127.0.0.1",
    *,
    port: int = 0,
    answer: Callable[[int], tuple[int, dict[str, str]]] = _ok,
    slowness_seconds: float = 0.0,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Receiver]:
    """Receive while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.messages.append(Message(self.path, headers, body))
            number = len(receiver.messages)
            time.sleep(receiver.slowness_seconds)
            status, extra = receiver.answer(number)
            with contextlib.suppress(OSError):
                self.send_response(status)
                for name, value in {"Content-Length": "0", **extra}.items():
                    self.send_header(name, value)
                self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    server = Server((address, port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver = Receiver(address, server.server_address[1], answer, slowness_seconds=slowness_seconds)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
