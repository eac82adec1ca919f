"""Atomic writing of files."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkstemp

__all__ = ["write_atomically"]


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` as UTF-8 and create its directories. On failure, raise ``OSError`` without changes."""
    data = text.encode("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
