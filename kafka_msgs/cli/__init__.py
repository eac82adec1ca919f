"""The command ``kafka-msgs``: look up messages, decode bytes to readable text, and encode text to bytes.

``commands`` has one module per command, which parses options, calls the library, and prints text. ``render`` formats
the output. This module defines the entry point, and the error for missing packages of the ``cli`` extra.
"""

from __future__ import annotations

import atexit
import gc
import sys
from importlib import import_module
from typing import Final

from kafka_msgs.cli.interruption import exit_status, interrupt_on_sigterm
from kafka_msgs.errors import MissingExtraError

__all__ = ["main"]

_NEW_OBJECTS: Final = 100_000
"""The number of new objects before the garbage collector searches for reference cycles.

A command imports thousands of classes, which live as long as it does. The default threshold of 700 objects would take 5
% of a short run.
"""


def main() -> None:
    """Run the command with the process arguments, and exit with a status of ``help.EXIT_STATUSES``."""
    try:
        _run()
    except KeyboardInterrupt as interruption:  # During the imports: a command has its own handling.
        sys.exit(exit_status(interruption))


def _run() -> None:
    for package in ("click", "rich"):
        try:
            import_module(package)
        except ImportError:
            sys.exit(str(MissingExtraError(feature="the command line", extra="cli", package=package)))
    gc.set_threshold(_NEW_OBJECTS)
    # At its exit, Python would search all modules and classes for cycles and free them, which takes 100 ms.
    atexit.register(gc.freeze)
    from kafka_msgs.cli.arrow_import import own_process
    from kafka_msgs.cli.command_group import command

    own_process()
    interrupt_on_sigterm()
    command(prog_name="kafka-msgs")
