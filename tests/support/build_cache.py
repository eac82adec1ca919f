"""Files and directories that tests build once and keep: the first process builds them, the others wait."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.support.file_locks import lock_file

__all__ = ["made_once"]


def made_once(kept: Path, make: Callable[[Path], object]) -> Path:
    """Return ``kept``, calling ``make`` first if it does not exist; other processes see only the finished build."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_name(f"{kept.name}.lock").open("w") as lock:
        lock_file(lock)
        if not kept.exists():
            new = kept.with_name(f"{kept.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            make(new)
            new.rename(kept)
    return kept
