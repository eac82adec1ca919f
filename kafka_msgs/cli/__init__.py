"""The command ``kafka-msgs``: look messages up, and turn bytes into readable text and back.

One module a command, each no more than options in, one call into the library, and words out. This file owns the entry
point, and what is said where the packages of the ``cli`` extra are missing.
"""

from __future__ import annotations

import sys
from importlib import import_module

from kafka_msgs.errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the command with the arguments of the process, and exit: 0 done, 1 failed, 2 called in a wrong way."""
    for package in ("click", "rich"):
        try:
            import_module(package)
        except ImportError:
            sys.exit(str(MissingExtraError(feature="the command line", extra="cli", package=package)))
    from kafka_msgs.cli.group import command

    command(prog_name="kafka-msgs")
