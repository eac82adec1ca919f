"""Ctrl-C and SIGTERM: both end a command through its ``with`` blocks, so that consumers leave their groups."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Final, NoReturn

__all__ = ["Terminated", "exit_status", "interrupt_on_sigterm"]

_SIGNALLED: Final = 128


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


def interrupt_on_sigterm() -> None:
    """Raise ``Terminated`` in the main thread when the process receives SIGTERM."""
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def exit_status(interruption: KeyboardInterrupt) -> int:
    """Return the exit status that shells use for the signal."""
    return _SIGNALLED + (signal.SIGTERM if isinstance(interruption, Terminated) else signal.SIGINT)
