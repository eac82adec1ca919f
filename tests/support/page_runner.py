"""Runs the examples of a documentation page, in this process or in another environment.

    python -m tests.support.page_runner PAGE [ADDRESS REPLACEMENT]

Needs only the library's own dependencies, so that it runs in an environment with nothing but the extras of a page.
``markdown_pages`` describes the conventions. An example that fails, or prints other text, raises ``AssertionError``.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from tests.support.markdown_pages import ROOT, Block, blocks

__all__ = ["TARGETS", "run_block", "run_page"]

TARGETS: Final = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
"""The targets of the Makefile."""

_TIMEOUT_SECONDS: Final = 180
_FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_RUN: Final = ("kafka-msgs ", "kafka-msgs-generator ", "python ", "cat ", "ls ")
_NOT_RUN: Final = ("make ", "pip install ", "git ", "cd ", "bash ", ".venv/bin/", "KAFKA_MSGS_")


def run_page(page: Path, address: str = "", real: str = "") -> None:
    """Run the examples of a page from top to bottom, with the address ``real`` in place of ``address``."""
    names: dict[str, Any] = {"__name__": "page"}
    for written in blocks(page):
        text = written.text.replace(address, real) if address else written.text
        run_block(str(page.relative_to(ROOT)), evolve(written, text=text), names)


def run_block(name: str, block: Block, names: dict[str, Any]) -> None:
    """Run one block of the page ``name``, with the variables ``names``; text that is no example is ignored."""
    if "file" in block.options:
        _write(block)
    elif block.language == "python":
        _run_python(name, block, names)
    elif block.language == "console":
        _run_commands(name, block)


def _write(block: Block) -> None:
    path = Path(block.options["file"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")


def _run_python(name: str, block: Block, names: dict[str, Any]) -> None:
    if ">>>" not in block.text:
        exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), names)
        return
    examples = doctest.DocTestParser().get_examples(block.text)
    test = doctest.DocTest(examples, names, f"{name}, line {block.line}", name, block.line - 1, block.text)
    test.globs = names
    report: list[str] = []
    doctest.DocTestRunner(optionflags=_FLAGS).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


def _run_commands(name: str, block: Block) -> None:
    for number, text in enumerate(re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]):
        command, expected = _split(text)
        if command.startswith(_NOT_RUN):
            assert not command.startswith("make ") or command.split()[1] in TARGETS, f"no such target: {command}"
            continue
        assert command.startswith(_RUN), f"{name}, line {block.line}: what is {command!r}?"
        status, printed = _run(command)
        where = f"{name}, command {number + 1} of the block at line {block.line}: {command}"
        assert status == ("fails" in block.options), f"{where}: exit status {status}\n{printed}"
        if expected.strip():
            same = doctest.OutputChecker().check_output(_plain(expected), _plain(printed), _FLAGS)
            assert same, f"{where}\nexpected:\n{expected}\nprinted:\n{printed}"


def _split(text: str) -> tuple[str, str]:
    """Separate a command, including backslash continuations, from its output."""
    lines = text.splitlines(keepends=True)
    size = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\\n"))
    return "".join(line.removesuffix("\\\n") for line in lines[:size]).strip(), "".join(lines[size:])


def _run(command: str) -> tuple[int, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


def _plain(output: str) -> str:
    """Remove the width-dependent parts of tables."""
    return re.sub(r"─+", "─", output).strip() + "\n"


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    run_page(Path(sys.argv[1]), *sys.argv[2:])
