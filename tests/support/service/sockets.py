"""What a server says to callers who do not speak HTTP as libraries do."""

import contextlib
import socket
import threading
from collections.abc import Callable

#: Much longer than what a test waits for, and much shorter than it may take.
LONG_SECONDS = 20.0


def heard(port: int, *pieces: bytes, then: Callable[[], bytes] | None = None, pause: float = 0.1) -> bytes:
    """Send pieces, go on with ``then``, and return what the server says before it closes the connection, as it must."""
    with socket.create_connection(("127.0.0.1", port), timeout=LONG_SECONDS) as mine:
        for piece in pieces:
            mine.sendall(piece)
        message, stop = b"", threading.Event()

        def go_on() -> None:
            with contextlib.suppress(OSError):
                while then is not None and not stop.wait(pause):
                    mine.sendall(then())

        sender = threading.Thread(target=go_on)
        sender.start()
        try:
            # Who still sends may be told of the end by a reset.
            with contextlib.suppress(ConnectionResetError):
                while piece := mine.recv(65_536):
                    message += piece
        finally:
            stop.set()
            sender.join()
        return message
