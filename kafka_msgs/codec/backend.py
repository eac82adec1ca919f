"""Which executor runs the plans: chosen once, by the environment variable ``KAFKA_MSGS_BACKEND``.

``auto`` (the default) takes the fastest there is; ``python`` and ``reference`` name one. Kept apart from the executors
so that choosing one loads none.
"""

from __future__ import annotations

import os
from typing import Final

__all__ = ["BACKENDS", "backend"]

BACKENDS: Final = ("python", "reference")
"""The names of all executors, the fastest first."""


def _chosen(wanted: str) -> str:
    if wanted == "auto":
        return BACKENDS[0]
    if wanted not in BACKENDS:
        raise ImportError(f"KAFKA_MSGS_BACKEND={wanted}: there are only auto, {', '.join(BACKENDS)}")
    return wanted


_BACKEND: Final = _chosen(os.environ.get("KAFKA_MSGS_BACKEND", "auto"))


def backend() -> str:
    """Return the name of the executor in use."""
    return _BACKEND
