"""Entry point of the command, for ``kafka-msgs-generator`` and ``python -m kafka_msgs_generator``."""

from __future__ import annotations

import sys

from kafka_msgs.errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the command; without the packages it needs, report which to install."""
    try:
        import click  # noqa: F401
    except ImportError:
        sys.exit(str(MissingExtraError(feature="the generator", extra="generator", package="click")))
    from kafka_msgs_generator.cli import command

    command(prog_name="kafka-msgs-generator")


if __name__ == "__main__":
    main()
