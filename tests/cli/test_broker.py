"""``kafka-msgs broker`` as a process: its address, its output, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.cli.command_group import command
from kafka_msgs.client import ClientConfig, Consumer

WAIT = 30


@contextmanager
def running(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command on ports chosen by the system. Yield its process and its address."""
    arguments = [sys.executable, "-m", "kafka_msgs", "broker", "--port", "0", *options]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(number: signal.Signals) -> None:
    with running("--brokers", "2", "--verbose", "--config", "num.partitions=3") as (process, servers):
        assert len(servers.split(",")) == 2
        with Admin(servers) as admin:
            admin.create_topics([NewTopic("t")])
            assert len(admin.list_topics()["t"].partitions) == 3
        process.send_signal(number)
        _, shown = process.communicate(timeout=WAIT)
        assert process.returncode == 0
    assert "CreateTopics v7" in shown
    assert "problem" not in shown


def test_it_serves_programs_in_any_language(tmp_path: Path) -> None:
    """Options set listeners, users, topics and configs. When the broker is ready, it prints a line of JSON."""
    (tmp_path / "broker.properties").write_text("num.partitions=5\nauto.create.topics.enable=true\n")
    options = ["--listener", "IN:PLAINTEXT=127.0.0.1:0", "--listener", "OUT:SASL_PLAINTEXT=127.0.0.1:0"]
    options += ["--advertised", "IN=localhost:9999", "--sasl-user", "alice=secret", "--topic", "orders:3"]
    options += ["--topic", "other", "--config-file", str(tmp_path / "broker.properties"), "--json"]
    with running(*options) as (_, line):
        ready = json.loads(line)
        assert ready["ready"] is True
        assert ready["bootstrap_servers"] == ready["listeners"]["IN"] == "localhost:9999"
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        login["sasl.jaas.config"] = (
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";'
        )
        config = ClientConfig.from_properties({"bootstrap.servers": ready["listeners"]["OUT"], **login})
        with Admin(config) as admin:
            assert {name: len(each.partitions) for name, each in admin.list_topics().items()} == {
                "orders": 3,
                "other": 1,
            }
            admin.create_topics([NewTopic("t")])
            assert len(admin.list_topics()["t"].partitions) == 5


def test_it_starts_with_data_and_acls(tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text('[[topics]]\nname = "orders"\n[[records]]\ntopic = "orders"\nvalue = "tea"\n')
    options = ["--data", str(tmp_path / "shop.toml"), "--topic", "other", "--acl", "User:ANONYMOUS read topic:ord*"]
    with running(*options) as (_, servers):
        with Admin(servers) as admin:
            assert list(admin.list_topics()) == ["orders"]
        with Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("orders", 0)])
            assert [bytes(each.value or b"") for each in consumer.poll(WAIT)] == [b"tea"]


def test_it_is_controlled_over_http() -> None:
    with running("--control", "0", "--clock", "manual", "--json") as (_, line):
        body = json.dumps({"advance_ms": 1000}).encode()
        headers = {"Content-Type": "application/json"}
        url = json.loads(line)["control_url"] + "/clock"
        with urlopen(url, timeout=WAIT) as before, urlopen(Request(url, body, headers), timeout=WAIT) as after:
            assert json.load(after)["now_ms"] == json.load(before)["now_ms"] + 1000


def test_it_has_a_schema_registry() -> None:
    with running("--schema-registry", "0", "--json") as (_, line):
        subjects = urlopen(json.loads(line)["registry_url"] + "/subjects", timeout=WAIT)
        with subjects:
            assert json.load(subjects) == []


def test_the_commands_of_the_image_run_without_an_image() -> None:
    """The ports are replaced with ports chosen by the system."""
    lines = (Path(__file__).parents[2] / "docs/examples/broker-image/Dockerfile").read_text().splitlines()
    commands = {name: json.loads(rest) for name, _, rest in (line.partition(" ") for line in lines) if rest[0] == "["}
    entry, options = commands["ENTRYPOINT"], commands["CMD"]
    assert entry[:2] == ["kafka-msgs", "broker"]
    free = [re.sub(r"=0\.0\.0\.0:\d+$", "=127.0.0.1:0", each) for each in options]
    with running(*entry[2:], *free) as (_, line):
        assert json.loads(line)["listeners"] == {"NETWORK": "broker:9092", "HOST": "localhost:9093"}


def test_it_shows_no_control_characters_of_clients() -> None:
    with running("--verbose") as (process, servers):
        with Admin(servers, client_id="\x1b[2J\x1b]0;title\x07") as admin:
            admin.list_topics()
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=WAIT)
    assert "Metadata" in shown
    assert "\x1b" not in shown
    assert "u001b[2J" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config", "nothing"], "is not NAME=VALUE"),
        (["--config", "no.such=1"], "there is no such broker config"),
        (["--as-release", "0.7"], "known are"),
        (["--listener", "IN"], "is not NAME[:PROTOCOL]=HOST:PORT"),
        (["--advertised", "PLAINTEXT=0.0.0.0:9092"], "clients cannot connect to it"),
        (["--topic", "orders:many"], "form is NAME[:PARTITIONS]"),
        (["--durable"], "it needs a directory"),
        (["--schema-registry", "localhost"], "is not [HOST:]PORT"),
        (["--acl", "User:a read"], "PRINCIPAL OPERATION TYPE:NAME"),
    ],
)
def test_wrong_options_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(command, ["broker", "--port", "0", *options])
    assert result.exit_code != 0
    assert message in result.output
