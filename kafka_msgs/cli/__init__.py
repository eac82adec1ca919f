"""The command ``kafka-msgs``: look messages up, and turn bytes into readable text and back.

``commands`` has one module per command: options in, one call into the library, text out. ``render`` has what they
print. This file owns the entry point, and the error where the packages of the ``cli`` extra are missing.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Final

from kafka_msgs.errors import MissingExtraError

__all__ = ["main"]

_NEW_OBJECTS: Final = 100_000
"""How many new objects there are before the garbage collector looks for rings among them.

A command imports thousands of classes, which live as long as it does. To look through them at each 700 new objects
takes a twentieth of a short run.
"""


def main() -> None:
    """Run the command with the arguments of the process, and exit: 0 done, 1 failed, 2 wrong call."""
    for package in ("click", "rich"):
        try:
            import_module(package)
        except ImportError:
            sys.exit(str(MissingExtraError(feature="the command line", extra="cli", package=package)))
    gc.set_threshold(_NEW_OBJECTS)
    from kafka_msgs.cli.command_group import command

    command(prog_name="kafka-msgs")
