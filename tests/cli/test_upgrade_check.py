"""``kafka-msgs upgrade-check`` as users run it: verdicts, exit statuses, forms of output, and refused input."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_msgs.admin import Admin
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.capture.recording import recording_line, recording_start
from tests.support.recordings import GROUP_LOGS, PACKETS, TAPPED_GO
from tests.upgrade.exchanges import old_version

_COMMAND: Final = (str(Path(sys.executable).with_name("kafka-msgs")), "upgrade-check")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*_COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording with two requests of a removed version."""
    path = tmp_path / "traffic.jsonl"
    lines = [recording_start({}), *(recording_line(old_version(1, 3, second=second)) for second in (0, 5))]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


ROW: Final[Mapping[str, Any]] = {
    "verdict": "blocked",
    "client": "app",
    "software": None,
    "address": "192.0.2.7",
    "subject": "Fetch",
    "version": 3,
    "count": 2,
    "first": 1_700_000_000_000,
    "last": 1_700_000_005_000,
    "reason": "removed in 4.0 (KIP-896); Kafka 4.4 supports 4-18",
}


def test_a_blocked_client_has_its_own_exit_status(recording: Path) -> None:
    done = run("--to", "4.4", recording, "--json")
    assert (done.returncode, done.stderr) == (3, "")
    assert json.loads(done.stdout) == [ROW]
    shown = run("--to", "4.4", recording).stdout
    assert "2023-11-14 22:13:20" in shown
    assert run("--to", "3.9", recording).returncode == 0


def test_current_clients_are_not_blocked() -> None:
    done = run("--to", "4.4", TAPPED_GO, "--output", "jsonl")
    assert (done.returncode, done.stdout) == (0, "")
    everything = [
        json.loads(line) for line in run("--to", "4.4", TAPPED_GO, "--all", "--output", "jsonl").stdout.splitlines()
    ]
    assert {"kgo v1.22.2", None} <= {row["software"] for row in everything}


def test_the_report_has_a_page(recording: Path, tmp_path: Path) -> None:
    done = run("--to", "4.4", recording, "--report", tmp_path / "report")
    assert done.returncode == 3
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "<title>Upgrade to Kafka 4.4</title>" in page
    assert "removed in 4.0 (KIP-896)" in page
    assert json.loads((tmp_path / "report" / "report.json").read_text())["sections"][0]["rows"][0][0] == "blocked"


def test_log_directories_are_checked() -> None:
    done = run("--to", "4.0", "--log-dirs", GROUP_LOGS, "--output", "csv")
    assert done.returncode == 3
    assert "feature metadata.version,level 30" in done.stdout
    assert run("--to", "4.4", "--log-dirs", GROUP_LOGS).returncode == 0


def test_a_client_release_is_compared_with_a_broker_release() -> None:
    done = run("--client", "4.4", "--broker", "0.10.2", "--json")
    assert done.returncode == 3
    rows = {row["api"]: row for row in json.loads(done.stdout)}
    assert (rows["Fetch"]["verdict"], rows["Fetch"]["client"], rows["Fetch"]["broker"]) == ("blocked", "4-18", "0-3")
    done = run("--client", "4.4", "--broker", "2.0")
    assert (done.returncode, "does not document support" in done.stderr) == (0, True)
    assert run("--client", "4.4", "--broker", "2.1").stderr == ""


def test_live_traffic_is_checked() -> None:
    with EmbeddedBroker() as broker:
        command = [*_COMMAND, "--to", "2.4", "--listen", "127.0.0.1:0", "-b", broker.bootstrap_servers, "--json"]
        pipe = subprocess.PIPE
        with subprocess.Popen([*command, "--duration", "60"], stdout=pipe, stderr=pipe, text=True) as process:
            assert process.stderr is not None
            match = re.match(r"listening on (\S+) for ", process.stderr.readline())
            assert match is not None
            with Admin(match[1]) as admin:
                admin.describe_cluster()
            process.send_signal(signal.SIGINT)
            shown, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert {row["subject"] for row in json.loads(shown)} >= {"DescribeCluster"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --to and FILES, --listen or --log-dirs; or --client and --broker"),
        (["--to", "4.4"], "give --to and FILES"),
        (["--to", "9.9", "FILE"], "'9.9': the known releases are 0.9 to 4.4"),
        (["--to", "new", "FILE"], "'new': expected a release such as 4.4"),
        (["--to", "4.4", "nowhere.jsonl"], "'nowhere.jsonl' does not exist"),
        (["--to", "4.4", "--listen", "127.0.0.1:0"], "--listen needs --bootstrap-server"),
        (["--to", "4.4", "--listen", "somewhere:x", "-b", "b"], "'somewhere:x' is not HOST:PORT"),
        (["--client", "4.4"], "--client needs --broker"),
        (["--client", "4.4", "--broker", "2.0", "--to", "4.4"], "exclude --to"),
        (["--to", "4.4", "FILE", "--surprise"], "No such option"),
    ],
)
def test_wrong_calls_are_refused(recording: Path, arguments: list[str], message: str) -> None:
    done = run(*(str(recording) if each == "FILE" else each for each in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.split())


def test_files_that_are_not_captures_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "noise"
    path.write_bytes(b"\1" * 1000)
    done = run("--to", "4.4", path)
    assert done.returncode == 1
    assert "1 faults in captures" in done.stderr
    assert "Traceback" not in done.stderr
    done = run("--to", "4.4", "--log-dirs", tmp_path)
    assert (done.returncode, "there is no partition in it" in done.stderr) == (1, True)


def test_packet_captures_are_checked() -> None:
    path = PACKETS / "shop.pcapng"
    assert run("--to", "4.4", "--any-port", path).returncode == 0
    done = run("--to", "2.1", "--any-port", path, "--output", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["subject"] for row in rows if row["verdict"] == "blocked"} == {"OffsetDelete", "DescribeCluster"}
    assert {row["subject"] for row in rows if row["verdict"] == "unclear"} >= {"Produce", "Fetch", "Metadata"}
