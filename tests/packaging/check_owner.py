"""Checks that the owner has entered what a release needs and nobody else knows: the addresses of the project.

    python check_owner.py

Exits with status 1 while ``[project.urls]`` in ``pyproject.toml`` lacks an address. The release workflow runs it for
tags.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
NEEDED: Final = ("Changelog", "Documentation", "Issues", "Source")


def missing(project: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the needed names without an address in ``[project.urls]``."""
    urls = project.get("urls", {})
    return [name for name in NEEDED if not urls.get(name, "").startswith("https://")]


def main() -> str | None:
    """Return an error, or None."""
    names = missing(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])
    return f"[project.urls] needs an https address for: {', '.join(names)}" if names else None


if __name__ == "__main__":
    sys.exit(main())
