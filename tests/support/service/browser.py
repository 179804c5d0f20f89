"""A headless Chromium without a network, spoken to through its own debugging protocol."""

import base64
import contextlib
import itertools
import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from websockets.sync.client import connect

from tests.api.http.openapi.test_console_browser import CHROMIUM, FLAGS
from tests.support.waiting import PATIENCE_SECONDS


class Browser:
    """One page of one browser; what it asks for and complains about is kept."""

    def __init__(self, folder: Path, base_url: str) -> None:
        if CHROMIUM is None:
            pytest.skip("no Chromium found")
        self._profile = folder / "profile"
        self._base_url = base_url
        self._ids = itertools.count(1)
        self._stack = contextlib.ExitStack()
        self._session: str | None = None
        self.complaints: list[str] = []
        self.asked_for: list[str] = []

    def __enter__(self) -> Self:
        assert CHROMIUM is not None
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={self._profile}", "--remote-debugging-port=0", "about:blank"]
        self._process = self._stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
        self._stack.callback(self._process.terminate)
        port, path = self._address(self._profile / "DevToolsActivePort")
        self._socket = self._stack.enter_context(connect(f"ws://127.0.0.1:{port}{path}", max_size=None))
        target = self._send("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        attached = self._send("Target.attachToTarget", {"targetId": target, "flatten": True}, session=None)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _address(self, written: Path) -> Sequence[str]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if written.exists() and len(lines := written.read_text().splitlines()) == 2:
                return lines
            assert self._process.poll() is None, "Chromium ended"
            time.sleep(0.05)
        raise AssertionError("Chromium did not say where it listens")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the debugging protocol on the page."""
        return self._send(method, parameters, session=self._session)

    def _send(self, method: str, parameters: dict[str, Any], *, session: str | None) -> dict[str, Any]:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message if session is None else {**message, "sessionId": session}))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE_SECONDS))
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self._heard(answer.get("method", ""), answer.get("params", {}))

    def _heard(self, method: str, reported: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(reported["exceptionDetails"].get("exception", reported["exceptionDetails"])))
        elif method == "Runtime.consoleAPICalled" and reported["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(reported["args"]))
        elif method == "Log.entryAdded" and reported["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{reported['entry']['text']} {reported['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.asked_for.append(reported["request"]["url"])

    def open(self, path: str) -> None:
        """Open a page of the service, and wait until it and its charts are drawn."""
        self.call("Page.navigate", url=self._base_url + path)
        self.wait_for(f"location.href === {json.dumps(self._base_url + path)} && document.readyState === 'complete'")
        self.wait_for("document.querySelector('main h1') && !document.querySelector('main .loading')")
        self.wait_for("document.querySelectorAll('.chart:not([data-drawn])').length === 0")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.run(condition):
            assert time.monotonic() < deadline, f"never came: {condition}; {self.complaints} {self.text()[:2000]}"
            time.sleep(0.05)

    def run(self, expression: str) -> Any:
        """Return the value of an expression, awaited where it is a promise."""
        reported = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in reported, reported["exceptionDetails"]
        return reported["result"].get("value")

    def text(self) -> str:
        """The text of the page as it is seen."""
        return str(self.run("document.body?.innerText ?? ''"))

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window a size in pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def prefer(self, scheme: str) -> None:
        """Prefer ``light`` or ``dark``."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **({"text": text} if text and kind == "keyDown" else {}),
            )

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))
