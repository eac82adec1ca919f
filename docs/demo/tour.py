"""The first part of the demonstration: three sessions on a terminal, run as they are shown.

Needs the extras ``cli`` and ``broker``, and pytest; no Java, no Kafka, no network. ``docs/tools/screens.py`` draws the
same sessions for the README.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attrs import frozen
from rich.console import Console
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

__all__ = ["COLUMNS", "RESPONSE", "SESSIONS", "Session", "play", "show"]

COLUMNS: Final = 104
_SECONDS: Final = 120
_PROGRAMS: Final = {"kafka-msgs": ("-m", "kafka_msgs"), "python": ()}

_TERMINAL: Final = {
    "COLUMNS": str(COLUMNS),
    "FORCE_COLOR": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONIOENCODING": "utf-8",
    "TERM": "xterm-256color",
}

RESPONSE: Final = "0000000100066f72646572730000000100000000000000000000000400000000" + "0000"
"""An OffsetFetchResponse of version 2: the committed offset of one partition."""

_TEST: Final = """\
from kafka_msgs.client import Producer
from kafka_msgs.testing import topic_records


def test_an_order_is_written_once(kafka_broker, kafka_topic):
    with Producer(kafka_broker.bootstrap_servers) as producer:
        producer.send(kafka_topic, value=b"one tea")
    assert [record.value for record in topic_records(kafka_broker, kafka_topic)] == [b"one tea"]
"""


@frozen
class Session:
    """A session: commands, and a file that they need, as its name and text. A command may fail if it ``can_fail``."""

    title: str
    sentence: str
    commands: tuple[str, ...]
    file: tuple[str, str] | None = None
    can_fail: bool = False


SESSIONS: Final = (
    Session(
        "Explain every byte",
        "A broker's answer with a committed offset; then the same bytes, cut short. The error locates the damage.",
        (
            f"kafka-msgs decode OffsetFetchResponse 2 {RESPONSE} --explain",
            f"kafka-msgs decode OffsetFetchResponse 2 {RESPONSE[:-14]}",
        ),
        can_fail=True,
    ),
    Session(
        "Test an application without Kafka",
        "The broker runs inside the test process. Clients of any language can connect to it.",
        ("python -m pytest -q -p kafka_msgs.testing.pytest_plugin test_orders.py",),
        file=("test_orders.py", _TEST),
    ),
    Session(
        "Read consumer lag from a broker's files",
        "The package contains a small log directory of a stopped broker. No broker runs, and the group is empty.",
        ("kafka-msgs sample kafka-logs", "kafka-msgs lag audit --log-dirs kafka-logs"),
    ),
)


def show(console: Console) -> None:
    """Play all sessions on ``console``."""
    for number, session in enumerate(SESSIONS, 1):
        console.print(Rule(Text(f"{number}. {session.title}", style="bold"), align="left", style="blue"))
        console.print(Text(session.sentence))
        console.print()
        for part in play(session):
            console.print(part)
        console.print()


def play(session: Session) -> Iterator[Text | Syntax]:
    """Run a session in a new directory; yield what a terminal shows, in parts."""
    with TemporaryDirectory(prefix="kafka-msgs-demo-") as directory:
        if session.file is not None:
            name, text = session.file
            Path(directory, name).write_text(text, encoding="utf-8")
            yield Text(f"# {name}", style="italic")
            yield Syntax(text, "python", theme="ansi_dark", background_color="default", word_wrap=True)
        for command in session.commands:
            yield Text.assemble(("$ ", "bold green"), command)
            yield Text.from_ansi(_shortened(_output(command, directory, can_fail=session.can_fail)))


def _output(command: str, directory: str, *, can_fail: bool) -> str:
    program, *arguments = shlex.split(command)
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "PYTEST_ADDOPTS"}}
    done = subprocess.run(
        [sys.executable, *_PROGRAMS[program], *arguments],
        cwd=directory,
        env=environment | _TERMINAL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode and not can_fail:
        raise SystemExit(f"{command}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def _shortened(output: str, most: int = 12) -> str:
    """Return the output without blank lines at its ends and after its columns, and with at most ``most`` lines."""
    lines = re.sub(r"[ \t]+$", "", output, flags=re.MULTILINE).strip("\n").splitlines()
    return "\n".join(lines if len(lines) <= most else [*lines[:3], f"… {len(lines) - 3} more lines"])
