"""What type checkers accept and refuse: mypy and pyright read the programs beside this module.

A line of a program that ends in ``# refused`` must be an error, and no other line may be one. Pyright runs as
basedpyright, which is the same checker packaged with its own Node.js: it needs nothing from elsewhere.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
ROOT = Path(__file__).parents[2]

Lines = dict[str, dict[int, str]]


def _grouped(found: list[tuple[str, int, str]]) -> Lines:
    lines: Lines = {}
    for file, line, text in found:
        lines.setdefault(Path(file).name, {})[line] = text
    return lines


@pytest.fixture(scope="module")
def mypy(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    cache = tmp_path_factory.mktemp("mypy")
    config = cache / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\n")
    command = [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", cache, "--no-pretty"]
    done = subprocess.run([*command, *PROGRAMS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    found = re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return _grouped([(file, int(line), text) for file, line, text in found])


@pytest.fixture(scope="module")
def pyright(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    config = tmp_path_factory.mktemp("pyright") / "pyrightconfig.json"
    include = [str(program) for program in PROGRAMS]
    config.write_text(json.dumps({"typeCheckingMode": "standard", "include": include, "extraPaths": [str(ROOT)]}))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", config], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(PROGRAMS)
    return _grouped(
        [
            (each["file"], each["range"]["start"]["line"] + 1, each["message"])
            for each in report["generalDiagnostics"]
            if each["severity"] == "error"
        ]
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.stem for program in PROGRAMS])
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_program_is_refused_where_it_is_wrong_and_only_there(
    checker: str, program: Path, request: pytest.FixtureRequest
) -> None:
    lines: Lines = request.getfixturevalue(checker)
    text = program.read_text().splitlines()
    expected = {number for number, line in enumerate(text, 1) if line.endswith("# refused")}
    found = lines.get(program.name, {})
    assert {line: found[line] for line in sorted(found.keys() - expected)} == {}
    assert expected - found.keys() == set()
