"""Imports of a command that runs a job in its own process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Run
from tests.support.recordings import RECORDINGS

LEFT_OUT = ("pandas", "matplotlib", "pyspark", "IPython", "duckdb")
"""Installed packages whose import takes longer than an incremental run."""


def output_of(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def test_a_job_in_this_process_imports_no_engine_and_no_pandas(tmp_path: Path) -> None:
    code = (
        "import atexit, sys; from kafka_msgs.cli import main;"
        f"atexit.register(lambda: print('imported', *sorted({set(LEFT_OUT)!r} & set(sys.modules)))); main()"
    )
    arguments = ("pipeline", "group-offsets", str(RECORDINGS / "groups" / "log"), "--out", str(tmp_path / "out"))
    for _ in range(2):
        *shown, imported = output_of(code, *arguments, "--engine", "local").splitlines()
        assert shown[-1] == str(tmp_path / "out" / "commits.svg")
        assert imported.strip() == "imported"


@pytest.mark.parametrize("arguments", [("lag",), ("groups",), ("profile",), ("consumer-groups", "--list")])
def test_a_command_on_log_directories_imports_no_engine_and_no_pandas(arguments: tuple[str, ...]) -> None:
    code = (
        "import atexit, sys; from kafka_msgs.cli import main;"
        f"atexit.register(lambda: print('imported', *sorted({set(LEFT_OUT)!r} & set(sys.modules)))); main()"
    )
    *shown, imported = output_of(code, *arguments, "--log-dirs", str(RECORDINGS / "groups" / "log")).splitlines()
    assert len(shown) > 2
    assert imported.strip() == "imported"


@pytest.mark.parametrize("command", ["lag", "groups", "profile"])
def test_without_arrow_the_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run(command, "--log-dirs", str(RECORDINGS / "groups" / "log"))
    assert result.exit_code == 1
    assert result.stderr == "Error: --log-dirs needs pyarrow: pip install 'kafka-msgs[local]'\n"


def test_arrow_without_pandas_gives_pandas_to_those_who_ask_for_it() -> None:
    code = (
        "import sys; from kafka_msgs.cli.arrow_import import import_arrow_without_pandas;"
        "import_arrow_without_pandas(); import pyarrow as pa; table = pa.table({'a': pa.array([1, 2])});"
        "print('pandas' in sys.modules);"
        "frame = table.to_pandas(); print(type(frame).__name__, pa.array(frame['a']).to_pylist())"
    )
    assert output_of(code).split("\n") == ["False", "DataFrame [1, 2]", ""]
