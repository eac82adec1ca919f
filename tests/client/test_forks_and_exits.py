"""Programs that fork, that end without closing their clients, and that are cut off: in processes of their own.

Each program runs with warnings as errors, and must write nothing to its standard error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, TopicPartition
from tests.support.single_partition import create_topic, values

STRICT = ("-X", "dev", "-W", "error")
ENV = os.environ | {"PYTHONMALLOC": "pymalloc"}
EXIT_LIMIT = 20.0
"""Seconds for the exit of a program on a busy machine. The client waits for 5 of them, and never for its time-outs."""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """An embedded broker for all tests of this module."""
    with EmbeddedBroker(configs={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    """A topic of one partition, with the name of the test."""
    return create_topic(servers, request)


def run(code: str, *arguments: str, options: tuple[str, ...] = STRICT) -> subprocess.CompletedProcess[str]:
    """Run a program."""
    command = [sys.executable, *options, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=ENV)


REFUSED = """
import os, signal, sys, threading, time
from kafka_msgs.client import Consumer, Producer, TopicPartition
from kafka_msgs.errors import ForkedError
os.register_at_fork(after_in_child=lambda: signal.alarm(30))

def refuses(call):
    try:
        call()
    except ForkedError:
        return True
    return False

def sockets():
    paths = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return [path for path in paths if os.path.lexists(path) and "socket" in os.readlink(path)]

def wait(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

FORKS_DURING_SENDS = f"""{REFUSED}
servers, topic, batch_size = sys.argv[1], sys.argv[2], int(sys.argv[3])
producer = Producer(servers, batch_size=batch_size, linger=0.001)
stop, sent = threading.Event(), 0

def send():
    global sent
    while not stop.is_set():
        delivery = producer.send(topic, b"%d" % sent)
        sent += 1
        if sent % 20 == 0:
            delivery.result()

sys.setswitchinterval(1e-5)
sender = threading.Thread(target=send)
sender.start()
codes = set()
for number in range(20):
    time.sleep(0.002 * (number % 5))
    child = os.fork()
    if not child:
        calls = (lambda: producer.send(topic, b"child"), producer.flush, lambda: producer.partitions_for(topic))
        refused = [refuses(call) for call in calls]
        producer.close()
        os._exit(refused.count(False) + 10 * len(sockets()))
    codes.add(wait(child))
stop.set()
sender.join()
producer.close()
assert codes == {{0}}, codes
print(sent)
"""


@pytest.mark.parametrize("batch_size", [120, 16384])
def test_forks_during_sends_of_another_thread_cost_the_parent_nothing(
    servers: str, topic: str, batch_size: int
) -> None:
    """The children refuse every call at once, and keep no socket. With small batches, each send waits for its batch."""
    done = run(FORKS_DURING_SENDS, servers, topic, str(batch_size))
    assert (done.returncode, done.stderr) == (0, "")
    assert values(servers, topic) == [b"%d" % number for number in range(int(done.stdout))]


FORKS_DURING_POLLS = f"""{REFUSED}
servers, topic = sys.argv[1:]
place = TopicPartition(topic, 0)
producer, consumer = Producer(servers, linger=0.001), Consumer(servers, auto_offset_reset="earliest")
consumer.assign([place])
found = []

def poll():
    while len(found) < 200:
        found.extend(int(record.value) for record in consumer.poll(1.0))

reader = threading.Thread(target=poll)
reader.start()
codes = set()
for number in range(200):
    producer.send(topic, b"%d" % number)
    if number % 10:
        continue
    time.sleep(0.003)
    child = os.fork()
    if not child:
        calls = (lambda: consumer.poll(1.0), lambda: next(iter(consumer)), consumer.commit,
                 lambda: consumer.position(place), lambda: consumer.seek({{place: 0}}), lambda: consumer.assign([]))
        refused = [refuses(call) for call in calls]
        consumer.close()
        os._exit(refused.count(False) + 10 * len(sockets()))
    codes.add(wait(child))
reader.join()
producer.close(), consumer.close()
assert codes == {{0}}, codes
assert found == list(range(200))
"""


def test_forks_during_polls_of_another_thread_cost_the_parent_nothing(servers: str, topic: str) -> None:
    done = run(FORKS_DURING_POLLS, servers, topic)
    assert (done.returncode, done.stderr) == (0, "")


FORKS_FROM_A_SEND = f"""{REFUSED}
servers, topic = sys.argv[1:]
producer = Producer(servers, linger=60.0)
producer.send(topic, b"first")
lines, children, kept = 0, [], set()

def trace(frame, event, argument):
    if "/kafka_msgs/client/producer/" not in frame.f_code.co_filename:
        return None
    global lines
    if event == "line":
        lines -= 1
        if lines == 0:
            children.append(os.fork())
            if not children[-1]:
                sys.settrace(None)
                kept.add("child")
    return trace

for number in range(1, 60):
    lines = number
    sys.settrace(trace)
    try:
        producer.send(topic, b"%d" % number)
    except ForkedError:
        assert kept
    sys.settrace(None)
    if kept:
        refused = refuses(lambda: producer.send(topic, b"child"))
        producer.close()
        os._exit(0 if refused else 1)
assert len(children) > 10
assert all([wait(child) == 0 for child in children])
producer.close()
"""


def test_a_fork_at_any_line_of_a_send_leaves_the_record_to_the_parent(servers: str, topic: str) -> None:
    """A signal handler forks inside of ``send``, and both processes continue in it."""
    done = run(FORKS_FROM_A_SEND, servers, topic)
    assert (done.returncode, done.stderr) == (0, "")
    assert values(servers, topic) == [b"first", *(b"%d" % number for number in range(1, 60))]


FORK_SERVER = """
import multiprocessing, sys
from kafka_msgs.client import Producer

def send(servers, topic, value):
    with Producer(servers) as producer:
        producer.send(topic, value)

if __name__ == "__main__":
    servers, topic, method = sys.argv[1:]
    with Producer(servers) as producer:
        producer.send(topic, b"parent")
        producer.flush()
        context = multiprocessing.get_context(method)
        for value in (b"1", b"2"):
            process = context.Process(target=send, args=(servers, topic, value))
            process.start()
            process.join()
            assert process.exitcode == 0
        producer.send(topic, b"again")
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_children_of_multiprocessing_have_clients_of_their_own(
    servers: str, topic: str, method: str, tmp_path: os.PathLike[str]
) -> None:
    program = os.path.join(tmp_path, "program.py")
    with open(program, "w") as file:
        file.write(FORK_SERVER)
    command = [sys.executable, *STRICT, program, servers, topic, method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=ENV)
    assert (done.returncode, done.stderr) == (0, "")
    assert values(servers, topic) == [b"parent", b"1", b"2", b"again"]


BUFFERED = """
import os, sys
from kafka_msgs.client import Consumer, Producer
producer = Producer(sys.argv[1], linger=60.0)
for number in range(100):
    producer.send(sys.argv[2], b"%d" % number)
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [("", 0), ("sys.exit(3)", 3), ("raise SystemExit('ended')", 1), ("1 / 0", 1), ("os.kill(os.getpid(), 2)", -2)],
    ids=["end", "exit", "message", "exception", "interrupt"],
)
def test_buffered_records_are_delivered_at_the_exit(servers: str, topic: str, end: str, code: int) -> None:
    done = run(BUFFERED + end, servers, topic)
    assert done.returncode in {code, 1 if code < 0 else code}  # 1 where the parent process ignores the signal
    assert "kafka_msgs" not in done.stderr
    assert values(servers, topic) == [b"%d" % number for number in range(100)]


def test_records_are_lost_with_a_process_that_skips_its_exit_but_nothing_hangs(servers: str, topic: str) -> None:
    done = run(BUFFERED + "os._exit(4)", servers, topic)
    assert (done.returncode, done.stderr) == (4, "")
    assert values(servers, topic) == []


def test_an_exit_does_not_wait_long_for_a_broker_that_is_gone() -> None:
    """The records that were given up are logged. No thread hangs, and none dies inside of the interpreter."""
    code = """
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.client import Producer
with EmbeddedBroker() as broker:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 1)]).all()
    producer = Producer(broker.bootstrap_servers, linger=60.0)
    producer.send("t", b"a")
print("end", flush=True)
"""
    command = [sys.executable, "-X", "dev", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "end\n"
        start = time.monotonic()
        messages = process.stderr.read()
        assert process.wait(30) == 0
    assert time.monotonic() - start < EXIT_LIMIT
    assert "not closed in order at the exit" in messages
    assert "Fatal" not in messages


def test_a_consumer_leaves_its_group_at_the_exit(servers: str, topic: str) -> None:
    """The group does not wait until the session expires: the partition has a new owner at once."""
    code = """
import sys
from kafka_msgs.client import Consumer, Producer
with Producer(sys.argv[1]) as producer:
    producer.send(sys.argv[2], b"a")
options = dict(auto_offset_reset="earliest", auto_commit=True, session_timeout=40.0)
consumer = Consumer(sys.argv[1], group_id=sys.argv[2], **options)
consumer.subscribe(sys.argv[2])
assert len(consumer.poll(20.0)) == 1
assert consumer.poll(0.0) == []
"""
    done = run(code, servers, topic)
    assert (done.returncode, done.stderr) == (0, "")
    place = TopicPartition(topic, 0)
    start = time.monotonic()
    with Consumer(servers, group_id=topic) as consumer:
        consumer.subscribe(topic)
        while not consumer.assignment:
            consumer.poll(0.1)
            assert time.monotonic() - start < 15
        assert consumer.committed([place])[place].offset == 1
