"""Imports of a command that runs a job in its own process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Run
from tests.support.recordings import RECORDINGS

LEFT_OUT = ("pandas", "numpy", "matplotlib", "pyspark", "IPython", "duckdb")
"""Installed packages whose import takes longer than an incremental run."""
NOT_NEEDED = (*LEFT_OUT, "pyarrow.dataset", "importlib.metadata", "email", "argparse", "asyncio", "http.client")
"""Modules that no command on log directories needs. Each costs a short run several percent of its time."""
WRITERS = ("pyarrow.fs", "pyarrow.parquet", "ssl", "jinja2", "kafka_msgs.tables.commit_log", "kafka_msgs.report.writer")
"""Modules that write files, directly or for others."""


def output_of(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def imports_of(modules: tuple[str, ...]) -> str:
    """The code of a process that runs the command, and then prints which of the modules it has imported."""
    return (
        "import atexit, sys; from kafka_msgs.cli import main;"
        f"atexit.register(lambda: print('imported', *sorted({set(modules)!r} & set(sys.modules)))); main()"
    )


def test_a_job_in_this_process_imports_no_engine_and_no_pandas(tmp_path: Path) -> None:
    arguments = ("pipeline", "group-offsets", str(RECORDINGS / "groups" / "log"), "--out", str(tmp_path / "out"))
    for _ in range(2):
        *shown, imported = output_of(imports_of(NOT_NEEDED), *arguments, "--engine", "local").splitlines()
        assert shown[-1] == str(tmp_path / "out" / "commits.svg")
        assert imported.strip() == "imported"


@pytest.mark.parametrize(
    ("arguments", "not_needed"),
    [
        (("lag",), NOT_NEEDED + WRITERS),
        (("groups",), NOT_NEEDED + WRITERS),
        (("consumer-groups", "--list"), NOT_NEEDED + WRITERS),
        (("profile",), NOT_NEEDED),
    ],
)
def test_a_command_on_log_directories_imports_only_what_it_needs(
    arguments: tuple[str, ...], not_needed: tuple[str, ...]
) -> None:
    *shown, imported = output_of(
        imports_of(not_needed), *arguments, "--log-dirs", str(RECORDINGS / "groups" / "log")
    ).splitlines()
    assert len(shown) > 2
    assert imported.strip() == "imported"


@pytest.mark.parametrize("command", ["lag", "groups", "profile"])
def test_without_arrow_the_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run(command, "--log-dirs", str(RECORDINGS / "groups" / "log"))
    assert result.exit_code == 1
    assert result.stderr == "Error: --log-dirs needs pyarrow: pip install 'kafka-msgs[local]'\n"


def test_the_sample_is_reported_without_pandas(tmp_path: Path) -> None:
    """Its reports contain timestamps, for which Arrow asks for pandas a second time."""
    logs, out = str(tmp_path / "kafka-logs"), str(tmp_path / "out")
    output_of("from kafka_msgs.cli import main; main()", "sample", logs)
    for job in ("group-offsets", "topic-profile"):
        shown = output_of(imports_of(NOT_NEEDED), "pipeline", job, logs, "--out", out + job, "--engine", "local")
        assert shown.splitlines()[-1].strip() == "imported"


def test_another_program_keeps_arrow_with_numpy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from kafka_msgs.cli.command_group import command;"
        "print(CliRunner().invoke(command, ['lag', '--log-dirs', sys.argv[1]]).exit_code);"
        "import pyarrow as pa; print(pa.array([1, 2]).to_numpy().sum())"
    )
    assert output_of(code, str(RECORDINGS / "groups" / "log")).split() == ["0", "3"]


def test_arrow_without_pandas_gives_pandas_to_those_who_ask_for_it() -> None:
    code = (
        "import sys; from kafka_msgs.cli.arrow_import import import_arrow_without_pandas;"
        "import_arrow_without_pandas(); import pyarrow as pa; table = pa.table({'a': pa.array([1, 2])});"
        "print('pandas' in sys.modules);"
        "frame = table.to_pandas(); print(type(frame).__name__, pa.array(frame['a']).to_pylist())"
    )
    assert output_of(code).split("\n") == ["False", "DataFrame [1, 2]", ""]
