"""Which executor runs the plans: chosen once, by the environment variable ``KAFKA_MSGS_BACKEND``.

``auto`` (the default) takes the fastest there is; ``c``, ``python`` and ``reference`` name one. Kept apart from the
executors so that choosing one loads no other.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Final

__all__ = ["BACKENDS", "backend"]

_CORE: Final = "kafka_msgs.codec._speedups"
_WANTED: Final[str] = os.environ.get("KAFKA_MSGS_BACKEND", "auto")


def _has_core() -> bool:
    """Whether the C core can run; where another executor was asked for it is looked for, and not loaded."""
    if _WANTED not in ("auto", "c"):
        return find_spec(_CORE) is not None
    try:
        import_module(_CORE)
    except ImportError:
        return False
    return True


BACKENDS: Final[tuple[str, ...]] = (*(("c",) if _has_core() else ()), "python", "reference")
"""The names of the executors that can run here, the fastest first."""


def _chosen(wanted: str) -> str:
    if wanted == "auto":
        return BACKENDS[0]
    if wanted not in BACKENDS:
        raise ImportError(f"KAFKA_MSGS_BACKEND={wanted}: here there are only auto, {', '.join(BACKENDS)}")
    return wanted


_BACKEND: Final = _chosen(_WANTED)


def backend() -> str:
    """Return the name of the executor in use: ``c``, ``python`` or ``reference``."""
    return _BACKEND
