"""``kafka-msgs guess`` as users run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

_COMMAND: Final = (str(Path(sys.executable).with_name("kafka-msgs")), "guess")
HEARTBEAT: Final = "00037465610000000700036d2d31"


def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*_COMMAND, *arguments], input=stdin, capture_output=True, timeout=120, check=False)


def test_the_most_plausible_message_comes_first() -> None:
    done = run(HEARTBEAT, "--json", "--limit", "3")
    rows = json.loads(done.stdout)
    assert done.returncode == 0
    assert [(row["message"], row["version"], row["form"], row["framed"]) for row in rows] == [
        ("HeartbeatRequest", version, "message", False) for version in (2, 1, 0)
    ]
    assert b"more; --limit shows them" in done.stderr


def test_bytes_come_from_a_file_or_from_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes.fromhex(HEARTBEAT))
    assert run(f"@{path}", "--json").stdout == run("@-", "--json", stdin=path.read_bytes()).stdout


def test_own_definitions_are_candidates(tmp_path: Path) -> None:
    definition = (
        '{"name": "Mine", "type": "data", "validVersions": "0", "flexibleVersions": "none",'
        ' "fields": [{"name": "Text", "type": "string", "versions": "0+"}]}'
    )
    (tmp_path / "Mine.json").write_text(definition)
    rows = json.loads(run("000568656c6c6f", "--definitions", str(tmp_path), "--json").stdout)
    assert "Mine" in {row["message"] for row in rows}


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["xyz"], 1, b"not hexadecimal"),
        (["@nowhere"], 1, b"nowhere: No such file or directory"),
        (["ff" * 40], 1, b"no message of this release reads all of these bytes"),
        (["00", "--limit", "0"], 2, b"0 is not in the range x>=1"),
        (["00", "11"], 2, b"unexpected extra argument"),
        (["@-"], 1, b"the limit is 1048576"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], status: int, message: bytes) -> None:
    done = run(*arguments, stdin=bytes(2**20 + 1))
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr
    assert b"Traceback" not in done.stderr
