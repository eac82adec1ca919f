"""The choice of the backend, made once for the library by the environment variable ``KAFKA_MSGS_BACKEND``.

``auto`` (the default) selects the fastest available backend; ``c``, ``python`` and ``reference`` select one by name.
With ``c``, the codec, the records, the columns and the log run in the C core. The other backends do not load the core.
``reference`` is only a codec executor; all other packages then run in Python.

Each of these packages has two implementations, the modules ``native`` and ``python``, with the same functions.
``python`` is complete and runs everywhere; ``native`` calls the C core. ``backend_module`` returns the active one.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final
from warnings import warn

__all__ = ["BACKENDS", "CORE", "backend", "backend_module"]

CORE: Final = "kafka_msgs._core.extension"
"""The module of the C core."""

_WANTED: Final[str] = os.environ.get("KAFKA_MSGS_BACKEND", "auto")


def _has_core() -> bool:
    """Return whether the C core is available. It is not loaded if another backend was requested."""
    if _WANTED not in ("auto", "c"):
        return find_spec(CORE) is not None
    try:
        import_module(CORE)
    except ModuleNotFoundError as error:
        if error.name != CORE:
            raise
        return False
    except ImportError as error:
        if _WANTED == "c":
            raise
        warn(f"the C core cannot be loaded, so the slower Python code runs: {error}", RuntimeWarning, stacklevel=2)
        return False
    return True


BACKENDS: Final[tuple[str, ...]] = (*(("c",) if _has_core() else ()), "python", "reference")
"""The names of the available backends, the fastest first."""


def _chosen(wanted: str) -> str:
    if wanted == "auto":
        return BACKENDS[0]
    if wanted not in BACKENDS:
        raise ImportError(f"KAFKA_MSGS_BACKEND={wanted}: the backends here are auto, {', '.join(BACKENDS)}")
    return wanted


_BACKEND: Final = _chosen(_WANTED)


def backend() -> str:
    """Return the name of the backend in use: ``c``, ``python`` or ``reference``."""
    return _BACKEND


def backend_module(package: str, name: str | None = None) -> Any:
    """Return a package's implementation module for a backend, by default for the backend in use.

    It is ``native`` for ``c``, and ``python`` for all other backends.
    """
    return import_module(f"{package}.{'native' if (name or _BACKEND) == 'c' else 'python'}")
