"""Directories that cannot be listed, including for root, whom file permissions do not restrict."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

__all__ = ["forbid_listing"]


def forbid_listing(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Patch the listing of a directory to fail as without the permission to read it."""
    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, _refusing(getattr(os, name), directory))


def _refusing(listing: Callable[..., Any], directory: Path) -> Callable[..., Any]:
    def listed(path: Any = ".", *rest: Any) -> Any:
        if not isinstance(path, int) and Path(path) == directory:
            raise PermissionError(13, "Permission denied", str(directory))
        return listing(path, *rest)

    return listed
