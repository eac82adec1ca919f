"""Imports every public module of an installed kafka-msgs; one that needs an extra must name it.

    python import_public_modules.py docs/reference/public-api.md

Exits with status 1 if a module or one of its names fails with any other error than `MissingExtraError`.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

from kafka_msgs.errors import MissingExtraError


def needed_extra(module: str) -> str | None:
    """Return the extra that a module or one of its names needs, or None."""
    try:
        imported = import_module(module)
        for name in imported.__all__:
            getattr(imported, name)
    except MissingExtraError as error:
        return error.extra
    return None


def main(page: Path) -> int:
    """Print the modules by extra; return 1 if one fails without naming its extra."""
    needed: dict[str, int] = {}
    failed = False
    for module in re.findall(r"^## `(.+)`$", page.read_text(encoding="utf-8"), re.MULTILINE):
        try:
            extra = needed_extra(module) or "no extra"
            needed[extra] = needed.get(extra, 0) + 1
        except Exception as error:  # every failure is reported, not only the first
            print(f"{module}: {type(error).__name__}: {error}")
            failed = True
    print(", ".join(f"{extra}: {count} modules" for extra, count in sorted(needed.items())))
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
