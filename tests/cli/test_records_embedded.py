"""``kafka-msgs consume`` and ``produce`` against an embedded broker, as kcat users call them."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.cli.broker_options import ClusterOptions
from kafka_msgs.client import TopicPartition
from kafka_msgs.client.producer import Producer
from kafka_msgs.errors import KafkaMsgsError
from tests.support.command_line import Run
from tests.support.terminal import AtTerminal

COMMAND = (sys.executable, "-m", "kafka_msgs")


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin, request: pytest.FixtureRequest) -> str:
    name = f"t{abs(hash(request.node.name))}"
    admin.create_topics([NewTopic(name, 1)]).all()
    return name


@pytest.fixture
def at(broker: EmbeddedBroker) -> tuple[str, ...]:
    return ("-b", broker.bootstrap_servers)


def write(broker: EmbeddedBroker, topic: str, *values: bytes | None, **options: Any) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for value in values:
            producer.send(topic, value, **options)


def consumed(run: Run, topic: str, *arguments: str) -> bytes:
    result = run("consume", topic, "--until-end", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


HOSTILE = ["\x1b[2J\x1b]0;title\x07red\x1b[31m", "\x9b31mC1", "a\u202eb", "\x7fdel"]


@pytest.mark.parametrize("text", HOSTILE)
def test_values_reach_pipes_unchanged(
    run: Run, broker: EmbeddedBroker, topic: str, at: tuple[str, ...], text: str
) -> None:
    write(broker, topic, text.encode(), key=text.encode())
    assert consumed(run, topic, *at, "-K", "|").decode() == f"{text}|{text}\n"
    (row,) = consumed(run, topic, *at, "--output", "jsonl").splitlines()
    assert json.loads(row)["value"] == text


@pytest.mark.parametrize("options", [(), ("-K", "|"), ("-f", "%k %s\\n"), ("--output", "raw"), ("--output", "jsonl")])
def test_terminals_receive_no_control_characters(
    broker: EmbeddedBroker, topic: str, at: tuple[str, ...], options: tuple[str, ...]
) -> None:
    for text in HOSTILE:
        write(broker, topic, text.encode(), key=text.encode())
    with AtTerminal(["consume", topic, *at, "--until-end", *options]) as terminal:
        assert terminal.status() == 0
    shown = terminal.shown.replace("\r\n", "\n")
    assert not set(shown) & set("\x1b\x07\x9b\x7f\u202e")
    assert "\\u001b[2J" in shown
    assert "a\\u202eb" in shown


def test_null_differs_from_the_text_null(run: Run, broker: EmbeddedBroker, topic: str, at: tuple[str, ...]) -> None:
    write(broker, topic, None, b"null", b"")
    assert consumed(run, topic, *at) == b"<null>\nnull\n\n"
    assert consumed(run, topic, *at, "-f", "%S ") == b"-1 4 0 "
    assert consumed(run, topic, *at, "--null-marker", "NULL", "-D", ";") == b"NULL;null;;"
    assert run("produce", topic, *at, "--null-marker", "<null>", "-p", "0", stdin="<null>\nx\n").exit_code == 0
    assert consumed(run, topic, *at, "-o", "-2") == b"<null>\nx\n"


def test_formats_of_kcat(run: Run, broker: EmbeddedBroker, topic: str, at: tuple[str, ...]) -> None:
    write(broker, topic, b"\xff\x00v", key=b"k", timestamp=7, headers=[("h", b"1"), ("n", None)])
    form = "%t %p %o %k %K %s %S %R %T %h %%\\x41\\t\\n"
    expected = f"{topic} 0 0 k 1 ".encode() + b"\xff\x00v 3 \0\0\0\x03 7 h=1,n=NULL %A\t\n"
    assert consumed(run, topic, *at, "-f", form) == expected
    assert consumed(run, topic, *at, "--output", "raw", "-D", "") == b"\xff\x00v"
    encoded = base64.b64encode(b"\xff\x00v") + b"\n"
    assert consumed(run, topic, *at, "--value-decoder", "base64") == encoded
    assert run("consume", topic, *at, "-f", "%z").exit_code == 2


def test_filters(run: Run, broker: EmbeddedBroker, topic: str, at: tuple[str, ...]) -> None:
    for number in range(6):
        headers = [("source", b"web" if number % 2 else b"app")]
        write(broker, topic, f"v{number}".encode(), key=f"k{number}".encode(), headers=headers)
    write(broker, topic, b"v9")
    assert consumed(run, topic, *at, "--match-key", "k[0-2]") == b"v0\nv1\nv2\n"
    assert consumed(run, topic, *at, "--match-header", "source=^web$", "--match-key", "k[^1]") == b"v3\nv5\n"
    assert consumed(run, topic, *at, "--match-header", "source", "-c", "2") == b"v0\nv1\n"
    assert consumed(run, topic, *at, "--match-value", "9|0") == b"v0\nv9\n"
    assert run("consume", topic, *at, "--match-key", "(").exit_code == 2


def test_an_expression_selects_records_by_their_fields(
    run: Run, broker: EmbeddedBroker, topic: str, at: tuple[str, ...]
) -> None:
    for number in range(10):
        value = json.dumps({"amount": number, "customer": {"city": "Ulm" if number % 2 else "Bonn"}}).encode()
        write(broker, topic, value, key=b"k%d" % number, timestamp=number, headers=[("source", b"web")])
    write(broker, topic, b"no JSON", None)

    def keys(expression: str, *options: str) -> bytes:
        return consumed(run, topic, *at, "--where", expression, "-f", "%k ", *options)

    assert keys("value.amount > 7") == b"k8 k9 "
    assert keys("value.customer.city = 'Ulm' and offset < 4") == b"k1 k3 "
    assert keys("headers.source = 'web' and key in ('k2', 'k5')") == b"k2 k5 "
    assert keys("timestamp between 3 and 4 and partition = 0 and topic like 't%'") == b"k3 k4 "
    assert keys("value.amount > 2", "--match-key", "[01234]") == b"k3 k4 "
    assert keys("value is null", "--null-marker", "-") == b"- "


def test_values_that_cannot_be_decoded_are_reported(
    run: Run, broker: EmbeddedBroker, topic: str, at: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    write(broker, topic, b'{"a": 1}', b"no JSON", b"NaN")
    assert consumed(run, topic, *at, "--where", "value.a = 1") == b'{"a": 1}\n'
    assert f"{topic}: 2 keys or values could not be decoded for value.a = 1" in caplog.text


def test_an_expression_reads_records_of_internal_topics_by_their_messages(
    run: Run, broker: EmbeddedBroker, admin: Admin, topic: str, at: tuple[str, ...]
) -> None:
    admin.alter_group_offsets(topic, {TopicPartition(topic, 0): 17}).all()
    where = f"key.group = '{topic}' and value.offset = 17"
    lines = consumed(run, "__consumer_offsets", *at, "--where", where, "--output", "jsonl").splitlines()
    assert [json.loads(line)["value"]["offset"] for line in lines] == [17]


def test_a_mistake_in_an_expression_is_a_usage_error(run: Run, topic: str, at: tuple[str, ...]) -> None:
    result = run("consume", topic, *at, "--where", "value.amount >")
    assert result.exit_code == 2
    assert "at character 15: a column, a number or a text in quotes is expected" in " ".join(result.stderr.split())


def test_a_closed_pipe_leaves_the_printed_records_committed(
    broker: EmbeddedBroker, admin: Admin, topic: str, at: tuple[str, ...]
) -> None:
    write(broker, topic, *(f"{number:0100}".encode() for number in range(5000)))
    command = subprocess.Popen([*COMMAND, "consume", topic, *at, "-G", topic], stdout=subprocess.PIPE)
    assert command.stdout is not None
    lines = [command.stdout.readline() for _ in range(300)]
    command.stdout.close()
    assert command.wait(60) == 1
    committed = admin.list_group_offsets(topic).all()[TopicPartition(topic, 0)].offset
    assert int(lines[-1]) < committed < 5000, "all lines that entered the pipe, and no others"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_membership_and_print_the_count(
    broker: EmbeddedBroker, admin: Admin, topic: str, at: tuple[str, ...], number: signal.Signals
) -> None:
    write(broker, topic, b"1", b"2")
    command = subprocess.Popen(
        [*COMMAND, "consume", topic, *at, "-G", topic], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert command.stdout is not None
    assert [command.stdout.readline(), command.stdout.readline()] == [b"1\n", b"2\n"]
    time.sleep(0.5)  # The command counts a record after it has printed it.
    command.send_signal(number)
    assert command.communicate(timeout=60)[1] == b"2 records read\n"
    assert command.returncode == 0
    assert admin.describe_consumer_groups([topic]).all()[topic].members == ()
    assert admin.list_group_offsets(topic).all()[TopicPartition(topic, 0)].offset == 2


def test_lines_are_sent_as_they_arrive_and_sigterm_prints_the_count(run: Run, topic: str, at: tuple[str, ...]) -> None:
    command = subprocess.Popen(
        [*COMMAND, "produce", "-t", topic, *at], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip
    assert command.stdin is not None
    for number in range(2):
        command.stdin.write(f"{number}\n".encode())
        command.stdin.flush()
        shown = run("consume", topic, *at, "-o", str(number), "-c", "1").stdout_bytes
        assert shown == f"{number}\n".encode()
    command.send_signal(signal.SIGTERM)
    assert command.communicate(timeout=60)[1].decode() == f"2 records written to {topic}\n"
    assert command.returncode == 128 + signal.SIGTERM


@pytest.fixture
def leaderless() -> Iterator[str]:
    """Yield the address of a cluster whose topic ``t`` has one of seven partitions without a leader."""
    with EmbeddedBroker(brokers=2) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            brokers = {number: [int(number == 3)] for number in range(7)}
            admin.create_topics([NewTopic("t", assignments=brokers)]).all()
            admin.alter_group_offsets("g", {TopicPartition("t", number): 0 for number in range(7)}).all()
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(7):
                producer.send("t", str(number).encode(), partition=number).result()
        first = broker.bootstrap_servers.split(",")[0]
        broker.stop_broker(1)
        yield first


@pytest.mark.parametrize("start", ["beginning", "0", "-5", "@0"])
def test_a_partition_without_a_leader_hides_no_other(run: Run, leaderless: str, start: str) -> None:
    begun = time.monotonic()
    result = run("consume", "t", "-b", leaderless, "--until-end", "--timeout", "20s", "--from", start)
    assert time.monotonic() < begun + 10
    assert sorted(result.stdout.split()) == ["0", "1", "2", "4", "5", "6"]
    assert "t-3 has no leader" in result.stderr
    assert result.exit_code == 1


def test_lag_reports_the_other_partitions_in_time(run: Run, leaderless: str) -> None:
    begun = time.monotonic()
    result = run("lag", "-b", leaderless, "--timeout", "4s", "--json")
    assert time.monotonic() < begun + 8
    lags = {row["partition"]: row["lag"] for row in json.loads(result.stdout)}
    assert lags == {0: 1, 1: 1, 2: 1, 3: None, 4: 1, 5: 1, 6: 1}


def test_timeout_bounds_the_whole_command(fails: Callable[..., str]) -> None:
    begun = time.monotonic()
    fails("lag", "-b", "127.0.0.1:9", "--timeout", "700ms")
    assert time.monotonic() < begun + 3


def test_all_requests_of_a_command_have_one_deadline() -> None:
    cluster = ClusterOptions("127.0.0.1:9", 0.5, {})
    begun = time.monotonic()
    with cluster.admin() as admin:
        for _ in range(10):
            with pytest.raises(KafkaMsgsError):
                admin.describe_cluster(timeout=60)
    assert time.monotonic() < begun + 3


def test_the_default_port_the_environment_and_profiles(
    run: Run, broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(broker, topic, b"x")
    profiles = tmp_path / "profiles.toml"
    profiles.write_text(
        f'default = "here"\n[here]\nbootstrap-server = "{broker.bootstrap_servers}"\n'
        'timeout = "20s"\nproperties = { "client.id" = "someone" }\n[gone]\nbootstrap-server = "127.0.0.1:9"\n'
    )
    monkeypatch.setenv("KAFKA_MSGS_PROFILES", str(profiles))
    assert consumed(run, topic) == b"x\n"
    failed = run("consume", topic, "--profile", "gone", "--timeout", "300ms")
    assert failed.exit_code == 1
    assert "127.0.0.1:9" in failed.stderr
    assert consumed(run, topic, "--profile", "gone", "-b", broker.bootstrap_servers) == b"x\n"
    assert "there is no such profile; known are gone, here" in run("consume", topic, "--profile", "absent").stderr
    monkeypatch.setenv("KAFKA_MSGS_PROFILE", "gone")
    monkeypatch.setenv("KAFKA_MSGS_BOOTSTRAP_SERVER", broker.bootstrap_servers)
    assert consumed(run, topic) == b"x\n"
    profiles.write_text('[here]\nbootstrap = "x"\n')
    assert "bootstrap-server" in run("consume", topic, "--profile", "here").stderr


def test_without_a_port_9092_is_tried(fails: Callable[..., str]) -> None:
    assert "localhost:9092" in fails("api-versions", "-b", "localhost", "--timeout", "200ms")


def test_client_properties_on_the_command_line(
    run: Run, broker: EmbeddedBroker, topic: str, at: tuple[str, ...]
) -> None:
    write(broker, topic, b"x")
    with broker.requests() as log:
        consumed(run, topic, *at, "-X", "client.id=named")
        assert {each.client_id for each in log} == {"named"}
    assert run("consume", topic, *at, "-X", "no.such=1").exit_code == 1
    assert run("consume", topic, *at, "-X", "nonsense").exit_code == 2


@pytest.mark.parametrize(
    ("text", "status"), [("5s", 0), ("5000ms", 0), ("0.2m", 0), ("5000", 0), ("5x", 2), ("-1s", 2), ("0", 2)]
)
def test_times_have_units(run: Run, broker: EmbeddedBroker, at: tuple[str, ...], text: str, status: int) -> None:
    assert run("api-versions", *at, "--timeout", text).exit_code == status


def test_a_group_can_start_at_the_end(
    run: Run, broker: EmbeddedBroker, admin: Admin, topic: str, at: tuple[str, ...]
) -> None:
    write(broker, topic, b"old")
    command = subprocess.Popen(
        [*COMMAND, "consume", topic, *at, "-G", topic, "-o", "end", "-c", "1"], stdout=subprocess.PIPE
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while command.poll() is None and time.monotonic() < deadline:
        write(broker, topic, b"new")
        time.sleep(0.2)
    assert command.communicate()[0] == b"new\n"


@pytest.mark.parametrize("word", ["NaN", "-Infinity"])
def test_json_input_is_strict(run: Run, topic: str, at: tuple[str, ...], word: str) -> None:
    result = run("produce", topic, *at, "--jsonl", stdin=f'{{"value": {word}}}')
    assert result.exit_code == 1
    assert f"line 1: {word} is not JSON" in result.stderr


SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "total", "type": "double"}]}


def test_registry_payloads_both_ways(run: Run, topic: str, at: tuple[str, ...], registry_url: str) -> None:
    registry = ("--registry", registry_url)
    written = run("produce", topic, *at, *registry, "--value-schema", "orders-value", stdin='{"total": 1.5}\n')
    assert written.exit_code == 0, written.output
    assert run("produce", topic, *at, stdin="plain\n").exit_code == 0
    first, second = consumed(run, topic, *at, *registry).splitlines()
    assert json.loads(first) == {"total": 1.5}
    assert json.loads(second).keys() == {"hex", "problem"}
    assert run("produce", topic, *at, "--value-schema", "1", stdin="1\n").exit_code == 2
    assert run("consume", topic, *at, "--value-decoder", "registry").exit_code == 2
    refused = run("produce", topic, *at, *registry, "--value-schema", "1", stdin='{"total": "x"}\n')
    assert refused.exit_code == 1


@pytest.fixture
def registry_url() -> Iterator[str]:
    """Run a schema registry with one Avro schema, and yield its URL."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    found = {"id": 1, "subject": "orders-value", "version": 1, "schemaType": "AVRO", "schema": json.dumps(SCHEMA)}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
