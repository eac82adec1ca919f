"""Accepted and rejected code in type checkers: mypy and pyright check the programs in ``programs``.

A program line that ends in ``# refused`` must be an error, and all other lines must be free of errors. One more program
uses every public name. Pyright runs as basedpyright, the same checker packaged with its own Node.js, so it needs no
download. The library is placed in ``site-packages``, as pyright checks exports only of installed libraries.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import attr
import attrs
import pytest

import kafka_msgs
from kafka_msgs import drafts, messages

PROGRAMS = {path.name: path.read_text() for path in sorted((Path(__file__).parent / "programs").glob("*.py"))}
ROOT = Path(__file__).parents[2]
PUBLIC = (
    "kafka_msgs",
    *(f"kafka_msgs.{name}" for name in ("api_keys", "error_codes", "errors", "catalog", "message", "messages")),
    *(f"kafka_msgs.{name}" for name in ("versioned", "schema", "schema_compiler", "versions")),
    *(f"kafka_msgs.{name}" for name in ("admin", "capture", "columns", "log", "records", "spark", "testing", "wire")),
    *(f"kafka_msgs.drafts.{name}" for name in drafts.DRAFTS),
)


def every_public_name() -> str:
    """Return a program that imports and uses each name that a public module exports."""
    lines = []
    for number, module in enumerate(PUBLIC):
        exported = getattr(importlib.import_module(module), "__all__", None)
        names = set(exported or ()) | (set(messages.__all__) if module == "kafka_msgs" else set())
        for name in sorted(names):
            lines += [f"from {module} import {name} as {name}_{number}", f"print({name}_{number})"]
    return "\n".join(["import kafka_msgs", *lines, "print(kafka_msgs.OffsetFetchRequest)", ""])


ALL = {**PROGRAMS, "every_public_name.py": every_public_name()}
Lines = dict[str, dict[int, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, and a virtual environment with the library and its type dependencies."""
    folder = tmp_path_factory.mktemp("programs")
    for name, text in ALL.items():
        (folder / name).write_text(text)
    site = folder / "env" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    for package in (kafka_msgs, attr, attrs):
        (site / package.__name__).symlink_to(Path(str(package.__file__)).parent)
    return folder


def _grouped(found: list[tuple[str, int, str]]) -> Lines:
    lines: Lines = {}
    for file, line, text in found:
        lines.setdefault(Path(file).name, {})[line] = text
    return lines


@pytest.fixture(scope="module")
def mypy(folder: Path) -> Lines:
    config = folder / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\n[mypy-pyarrow.*]\nignore_missing_imports = true\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--no-pretty"]
    done = subprocess.run(
        [*command, "--cache-dir", str(folder / "cache"), *(str(folder / name) for name in ALL)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    found = re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return _grouped([(file, int(line), text) for file, line, text in found])


@pytest.fixture(scope="module")
def pyright(folder: Path) -> Lines:
    options = {"typeCheckingMode": "standard", "include": list(ALL), "venvPath": str(folder), "venv": "env"}
    (folder / "pyrightconfig.json").write_text(json.dumps(options))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(ALL)
    errors = [each for each in report["generalDiagnostics"] if each["severity"] == "error"]
    return _grouped([(each["file"], each["range"]["start"]["line"] + 1, each["message"]) for each in errors])


@pytest.mark.parametrize("program", ALL)
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_program_is_refused_where_it_is_wrong_and_only_there(
    checker: str, program: str, request: pytest.FixtureRequest
) -> None:
    lines: Lines = request.getfixturevalue(checker)
    text = ALL[program].splitlines()
    expected = {number for number, line in enumerate(text, 1) if line.endswith("# refused")}
    found = lines.get(program, {})
    assert {line: (text[line - 1], found[line]) for line in sorted(found.keys() - expected)} == {}
    assert expected - found.keys() == set()


def test_every_name_includes_the_messages_and_what_is_lazy() -> None:
    text = ALL["every_public_name.py"]
    assert text.count("\nprint(") > 2 * len(messages.__all__)
    assert "from kafka_msgs import OffsetFetchRequest as" in text
    assert "from kafka_msgs import compile_schema as" in text
