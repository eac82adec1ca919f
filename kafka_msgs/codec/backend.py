"""Which executor runs the plans: chosen once, by the environment variable ``KAFKA_MSGS_BACKEND``.

``auto`` (the default) takes the fastest there is; ``c``, ``python`` and ``reference`` name one. Kept apart from the
executors so that choosing one loads none.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final

__all__ = ["BACKENDS", "backend"]

try:
    import_module("kafka_msgs.codec._speedups")
except ImportError:
    _NATIVE: tuple[str, ...] = ()
else:
    _NATIVE = ("c",)

BACKENDS: Final = (*_NATIVE, "python", "reference")
"""The names of the executors that can run here, the fastest first."""


def _chosen(wanted: str) -> str:
    if wanted == "auto":
        return BACKENDS[0]
    if wanted not in BACKENDS:
        raise ImportError(f"KAFKA_MSGS_BACKEND={wanted}: here there are only auto, {', '.join(BACKENDS)}")
    return wanted


_BACKEND: Final = _chosen(os.environ.get("KAFKA_MSGS_BACKEND", "auto"))


def backend() -> str:
    """Return the name of the executor in use: ``c``, ``python`` or ``reference``."""
    return _BACKEND
