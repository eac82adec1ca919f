"""Pages run with the packages of their own install lines: each page in an environment of those extras alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_msgs.broker import EmbeddedBroker
from tests.support.build_cache import made_once
from tests.support.markdown_pages import ROOT, blocks, pages
from tests.support.skip_reasons import not_run

pytestmark = pytest.mark.slow

_INSTALL: Final = re.compile(r"pip install (?:-e \. )?'?(?:kafka-msgs|\.)(?:\[([\w,]+)\])?'?((?: [a-z][\w-]*)*)")
_BROKER: Final = "localhost:9092"
_ELSEWHERE: Final = re.compile(r"localhost:9000|pyspark|kafka-msgs pipeline|import --release")
"""Pages that need an S3 server, Spark or Maven; ``test_docs`` runs them with everything installed."""
_VENVS: Final = ROOT / "build" / "page-venvs"
_PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_COMMANDS: Final = "#!{python}\nfrom {module} import main\nraise SystemExit(main())\n"
_TIMEOUT_SECONDS: Final = 600


def _examples(page: Path) -> str:
    """Return the text of the blocks of a page that are run."""
    return "".join(block.text for block in blocks(page) if block.language in {"python", "console"})


def _runnable() -> Iterator[Any]:
    for page in pages():
        text = _examples(page)
        runs = re.search(r">>>|^\$ (?:kafka-msgs|python)|^import |^from ", text, re.MULTILINE)
        if runs and not _ELSEWHERE.search(text):
            yield pytest.param(page, id=str(page.relative_to(ROOT)))


def stated(page: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the extras and the other packages in the install lines of a page."""
    found = _INSTALL.findall(page.read_text(encoding="utf-8"))
    extras = {extra for names, _ in found for extra in names.split(",") if extra}
    return frozenset(extras), frozenset(package for _, names in found for package in names.split())


def requirements(extras: frozenset[str]) -> set[str]:
    """Return the packages of some extras, including the library's own dependencies."""
    found = set(_PROJECT["dependencies"])
    for extra in extras:
        for requirement in _PROJECT["optional-dependencies"][extra]:
            inner = re.fullmatch(r"kafka-msgs\[([\w,]+)\]", requirement)
            found |= requirements(frozenset(inner[1].split(","))) if inner else {requirement}
    return found


def environment(extras: frozenset[str], packages: frozenset[str]) -> Path:
    """Return the Python of an environment with these packages; it is built once."""
    name = "-".join(sorted(extras | packages)) or "none"
    wanted = sorted(requirements(extras) | packages)
    kept = made_once(_VENVS / name, lambda new: _build(new, wanted))
    if (kept / "packages.txt").read_text(encoding="utf-8").split("\n") != wanted:
        pytest.fail(f"{kept} has other packages than pyproject.toml; remove it")
    return kept / "bin" / "python"


def _build(directory: Path, packages: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    python = directory / "bin" / "python"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *packages],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        not_run(f"packages cannot be installed: {done.stderr[-200:]}")
    (site,) = directory.glob("lib/python*/site-packages")
    (site / "kafka-msgs.pth").write_text(f"{ROOT}\n{ROOT / 'generator'}\n", encoding="utf-8")
    (directory / "packages.txt").write_text("\n".join(packages), encoding="utf-8")
    for command, module in (
        ("kafka-msgs", "kafka_msgs.cli"),
        ("kafka-msgs-generator", "kafka_msgs_generator.__main__"),
    ):
        script = directory / "bin" / command
        script.write_text(_COMMANDS.format(python="/usr/bin/env python", module=module), encoding="utf-8")
        script.chmod(0o755)


@pytest.mark.parametrize("page", tuple(_runnable()))
def test_a_page_needs_only_what_it_tells_readers_to_install(page: Path, tmp_path: Path) -> None:
    python = environment(*stated(page))
    if _BROKER not in _examples(page):
        _run(python, tmp_path, str(page))
        return
    with EmbeddedBroker() as broker:
        _run(python, tmp_path, str(page), _BROKER, broker.bootstrap_servers)


def _run(python: Path, directory: Path, *arguments: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(python), "-m", "tests.support.page_runner", *arguments],
        cwd=directory,
        env=environment | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("page", tuple(_runnable()))
def test_a_page_with_a_broker_explains_how_to_get_one(page: Path) -> None:
    if _BROKER in _examples(page):
        assert "kafka-msgs broker" in " ".join(page.read_text(encoding="utf-8").split())
