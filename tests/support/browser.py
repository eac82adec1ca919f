"""A page in a real headless browser: Chromium, controlled over the pipe of its ``--remote-debugging-pipe`` option.

Requires ``chromium`` and ``bash``. The browser ends with the context; each wait is limited to one minute.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

__all__ = ["Browser", "browser_path"]

_SECONDS: Final = 60
_OPTIONS: Final = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe")


def browser_path() -> str | None:
    """Return the path of Chromium, or None if it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page in a browser. ``requests`` lists the addresses it requested, ``complaints`` its log entries."""

    def __init__(self, directory: Path) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._next = 0
        self._session: str | None = None
        self._rest = b""
        asked, self._write = os.pipe()
        self._read, answered = os.pipe()
        command = f'exec "$@" 3<&{asked} 4>&{answered}'
        program = [str(browser_path()), *_OPTIONS, f"--user-data-dir={directory}"]
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", *program],
            pass_fds=(asked, answered),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(asked)
        os.close(answered)

    def __enter__(self) -> Self:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Network"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(_SECONDS)
        os.close(self._read)
        os.close(self._write)

    def open(self, page: Path | str, *, width: int, dark: bool = False) -> None:
        """Open a file or an address on a screen of this width, and wait until it is loaded."""
        address = page.as_uri() if isinstance(page, Path) else page
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=address)
        ready = f"document.readyState === 'complete' && location.href === {json.dumps(address)}"
        deadline = monotonic() + _SECONDS
        while not self.run(ready):
            assert monotonic() < deadline, "the page does not load"

    def run(self, script: str, *, wait: bool = False) -> Any:
        """Return the value of a JavaScript expression in the page. With ``wait``, it is a promise to wait for."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=wait)["result"]
        return result.get("value")

    def press(self, key: str, text: str = "") -> None:
        """Press a key on the keyboard."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        codes |= {"/": 191, "End": 35, "Home": 36}
        for type_ in ("keyDown", "keyUp"):
            typed = {"text": text} if text and type_ == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=type_, key=key, windowsVirtualKeyCode=codes[key], **typed)

    def picture(self) -> bytes:
        """Return a PNG picture of the screen."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Run a protocol command and return its result."""
        self._next += 1
        session = {} if self._session is None else {"sessionId": self._session}
        command = {"id": self._next, "method": method, "params": params, **session}
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._next:
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event.get("method") == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], _SECONDS)
            data = os.read(self._read, 1 << 16) if ready else b""
            if not data:
                raise AssertionError("the browser does not answer")
            self._rest += data
        first, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message
