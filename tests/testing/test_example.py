"""The example for newcomers: its tests pass in a separate folder, with the plugin."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

EXAMPLE: Final = Path(__file__).parents[2] / "docs" / "examples" / "word-count"


def test_the_tests_of_the_example_pass_in_a_folder_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "word-count"
    shutil.copytree(EXAMPLE, folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_example_is_whole() -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "kafka-msgs[broker]" in project["optional-dependencies"]["test"]
    commands = ["pip install -e '.[test]'", "pytest"]
    workflow = (EXAMPLE / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert [line.strip().removeprefix("- run: ") for line in workflow.splitlines() if "- run:" in line] == commands
    assert "\n".join(commands) in (EXAMPLE / "README.md").read_text(encoding="utf-8")
