"""The client test suites: their versions, sources, cluster requirements, and commands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from kafka_msgs.admin import Admin, ScramMechanism, ScramUpsertion
from tests.campaigns.client_suites.brokers import Address, Wanted
from tests.campaigns.client_suites.outcomes import GoEvents, Outcome, of_pytest
from tests.recorders.other_clients import versions

__all__ = ["SUITES", "Command", "Suite"]

_HERE: Final = Path(__file__).parent
_TEST_SECONDS: Final = 180
_FETCH_SECONDS: Final = 600
_KGO_RECORDS: Final = "20000"
"""The number of records in the long tests of franz-go, instead of 500,000."""

Read = Callable[[Mapping[str, Any]], tuple[str, Outcome] | None]
"""Parses a report line into a test and its outcome, or None."""


@frozen
class Command:
    """The command of a suite. Its report is a file of JSON lines, or its output. ``selects`` is the test option."""

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    read: Read
    selects: str
    prints_report: bool = False


@frozen(kw_only=True)
class Suite:
    """A test suite. Suites with ``needs_source`` are not packaged, but only in their project's repository."""

    name: str
    version: str
    prepare: Callable[[Path | None, Path], Path]
    """Copies the suite into a directory, from a checkout if necessary; returns the directory to run it in."""
    command: Callable[[Path, Address, Path], Command]
    """Returns the command that runs a prepared suite with the cluster at an address and reports to a file."""
    needs_source: bool = False
    nodes: int = 1
    settings: Mapping[str, str] = field(factory=dict)
    users: Mapping[str, str] = field(factory=dict)

    @property
    def wanted(self) -> Wanted:
        """The cluster requirements of the suite."""
        return Wanted(self.nodes, self.settings, self.users)


# Python


def _copied(*parts: str) -> Callable[[Path | None, Path], Path]:
    """Return a function that copies only these parts of a checkout, so that the installed client may be used."""

    def prepare(source: Path | None, directory: Path) -> Path:
        assert source is not None
        for part in parts:
            copy = shutil.copytree if (source / part).is_dir() else shutil.copy
            copy(source / part, directory / part)
        return directory

    return prepare


def _pytest(plugin: str, *arguments: str, **environment: str) -> Callable[[Path, Address, Path], Command]:
    def command(directory: Path, address: Address, report: Path) -> Command:
        plugins = [f"-psuite_plugins.{name}" for name in ("reporting", "replacing", plugin)]
        limits = [f"--timeout={_TEST_SECONDS}", "--timeout-method=signal"]
        pytest = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-pno:kafka_msgs",
            "-pno:cacheprovider",
            f"--rootdir={directory}",
        ]
        told = {"KAFKA_MSGS_SUITE_BROKER": address.to_json(), "KAFKA_MSGS_SUITE_REPORT": str(report)}
        return Command(
            [*pytest, *plugins, *limits, *arguments],
            directory,
            {"PYTHONPATH": str(_HERE), **told, **environment},
            of_pytest,
            selects="-k",
        )

    return command


_AIOKAFKA: Final = Suite(
    name="aiokafka",
    version=version("aiokafka"),
    prepare=_copied("tests"),
    command=_pytest(
        "aiokafka_fixtures",
        "--docker-image=kafka:4.4.0",
        "--ignore=tests/test_requests.py",
        "--ignore=tests/coordinator",
        "tests",
    ),
    needs_source=True,
    settings={"auto.create.topics.enable": "true", "num.partitions": "2"},
    users={"test": "test", "test2": "test2"},
)

_KAFKA_PYTHON: Final = Suite(
    name="kafka-python",
    version="3.0.11",
    prepare=_copied("test", "kafka"),
    command=_pytest("kafka_python_fixtures", "test/integration", KAFKA_VERSION="4.4.0", KAFKA_ROOT="."),
    needs_source=True,
    settings={
        "auto.create.topics.enable": "true",
        "num.partitions": "4",
        "group.min.session.timeout.ms": "1000",
    },
)


def _confluent(name: str, **environment: str) -> Suite:
    return Suite(
        name=name,
        version="2.15.0",
        prepare=_copied("tests"),
        command=_pytest(
            "confluent_fixtures",
            "--ignore=tests/integration/schema_registry",
            "--ignore=tests/integration/share_consumer_oauth",
            "--ignore=tests/integration/share_consumer/test_share_consumer_deserialization.py",
            "-opython_files=test_*.py",
            "tests/integration",
            **environment,
        ),
        needs_source=True,
        settings={
            "auto.create.topics.enable": "true",
            "group.share.record.lock.duration.ms": "1000",
            "group.share.min.record.lock.duration.ms": "1000",
        },
        users={"sasl_user": "sasl_user"},
    )


_CONFLUENT: Final = (
    _confluent("confluent-kafka-python"),
    _confluent("confluent-kafka-python-848", TEST_CONSUMER_GROUP_PROTOCOL="consumer"),
)


# Go


def _module(path: str, package: str, of_version: str) -> Callable[[Path | None, Path], Path]:
    """Return a function that creates a Go module which depends on the suite's package, including its tests."""

    def prepare(source: Path | None, directory: Path) -> Path:
        for arguments in (["mod", "init", "suite"], ["get", "-t", f"{path}{package}@v{of_version}"]):
            subprocess.run(["go", *arguments], cwd=directory, check=True, timeout=_FETCH_SECONDS)
        return directory

    return prepare


def _franz(directory: Path, address: Address, report: Path) -> Command:
    environment = {
        "KGO_SEEDS": address.plaintext,
        "KGO_TEST_SCRAM": "alice:alice-secret",
        "KGO_TEST_SCRAM_SEEDS": address.listeners["SASL_PLAINTEXT"],
        "KGO_LOG_LEVEL": "none",
        "KGO_TEST_RECORDS": _KGO_RECORDS,
    }
    arguments = ["go", "test", "-json", "-count=1", "-parallel=4", "-timeout=0", "github.com/twmb/franz-go/pkg/kgo"]
    return Command(arguments, directory, environment, GoEvents(), selects="-run", prints_report=True)


_FRANZ: Final = Suite(
    name="franz-go",
    version=versions()["franz-go"],
    prepare=_module("github.com/twmb/franz-go", "/pkg/kgo", versions()["franz-go"]),
    command=_franz,
    nodes=3,
)

# Node


def _installed(source: Path | None, directory: Path) -> Path:
    """Copy the suite from a checkout in which ``npm install`` has run."""
    _copied("src", "testHelpers", "index.js", "jest.config.js", "package.json")(source, directory)
    assert source is not None
    (directory / "node_modules").symlink_to(source / "node_modules")
    return directory


def _jest(directory: Path, address: Address, report: Path) -> Command:
    for number, mechanism in ((256, ScramMechanism.SCRAM_SHA_256), (512, ScramMechanism.SCRAM_SHA_512)):
        with Admin(address.plaintext) as admin:
            change = ScramUpsertion(user="testscram", mechanism=mechanism, password=f"testtestscram={number}")
            admin.alter_user_scram_credentials([change]).all()
    listeners = {9092: "PLAINTEXT", 9093: "SSL", 9094: "SASL_SSL"}
    ports = {
        first + 3 * number: int(broker.rpartition(":")[2])
        for first, listener in listeners.items()
        for number, broker in enumerate(address.listeners[listener].split(","))
    }
    plugins = _HERE / "suite_plugins"
    return Command(
        [
            *("node_modules/.bin/jest", "--runInBand", "--forceExit", "--ci", "--no-watchman"),
            f"--setupFiles={plugins / 'kafkajs_ports.js'}",
            f"--reporters={plugins / 'kafkajs_reporter.js'}",
            "--testPathPattern=src/(admin|broker|cluster|consumer|producer)/",
        ],
        directory,
        {
            "KAFKA_VERSION": "4.4.0",
            "KAFKA_MSGS_SUITE_PORTS": json.dumps(ports),
            "KAFKA_MSGS_SUITE_REPORT": str(report),
        },
        of_pytest,
        selects="-t",
    )


_KAFKAJS: Final = Suite(
    name="kafkajs",
    version="2.2.4",
    prepare=_installed,
    command=_jest,
    needs_source=True,
    nodes=3,
    settings={"auto.create.topics.enable": "true", "num.partitions": "2", "default.replication.factor": "2"},
    users={"test": "testtest", "alice": "alicealice", "bob": "bobbob"},
)

SUITES: Final = {suite.name: suite for suite in (_AIOKAFKA, _KAFKA_PYTHON, *_CONFLUENT, _FRANZ, _KAFKAJS)}
"""The suites by name."""
