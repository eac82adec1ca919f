"""Sharing of the C core: by threads, by finalizers during a call, by interpreters, and by repeated imports."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest

from kafka_msgs import DescribeGroupsResponse, FetchResponse, MetadataResponse
from kafka_msgs._backend import BACKENDS, CORE
from kafka_msgs.errors import DecodeError
from kafka_msgs.testing.random_values import random_message
from tests.support.codecs import Codecs, codec

NATIVE = pytest.mark.skipif("c" not in BACKENDS, reason="the C core is not built")
THREADS = 8
SHARED = [MetadataResponse, FetchResponse, DescribeGroupsResponse]


@pytest.mark.parametrize("cls", SHARED, ids=lambda cls: cls.__name__)
def test_threads_share_a_codec(codecs: Codecs, cls: Any) -> None:
    """Each thread has its own messages, including failing ones, and gets exactly those."""
    version = cls.INFO.versions.highest
    start = threading.Barrier(THREADS)
    interval = sys.getswitchinterval()

    def work(number: int) -> int:
        rng = Random(number)
        start.wait()
        for _ in range(30):
            message = random_message(cls, version, rng, max_elements=3)
            data = codecs.encode(message, version)
            assert codecs.decode(cls, data, version) == message
            with pytest.raises(DecodeError):
                codecs.decode(cls, data[:-1], version)
        return number

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            assert list(pool.map(work, range(THREADS))) == list(range(THREADS))
    finally:
        sys.setswitchinterval(interval)


def test_a_finalizer_may_use_the_codec_that_is_working(codecs: Codecs) -> None:
    """The collector runs during decoding, and a finalizer decodes and encodes other messages meanwhile."""
    rng = Random(1)
    messages = [random_message(MetadataResponse, 12, rng, max_elements=6) for _ in range(12)]
    encoded = [codecs.encode(message, 12) for message in messages]
    runs: list[bool] = []

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            number = len(runs) % len(messages)
            runs.append(codecs.encode(codecs.decode(MetadataResponse, encoded[number], 12), 12) == encoded[number])

    thresholds = gc.get_threshold()
    gc.set_threshold(5)
    try:
        for message, data in zip(messages * 5, encoded * 5, strict=True):
            Cycle()
            assert codecs.decode(MetadataResponse, data, 12) == message
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert len(runs) == 60
    assert all(runs)


@NATIVE
def test_the_extension_may_be_imported_again() -> None:
    """A second copy has separate state; either copy can outlive the first."""
    name = CORE
    first = sys.modules.pop(name)
    try:
        second = importlib.import_module(name)
    finally:
        sys.modules[name] = first
        sys.modules["kafka_msgs._core"].extension = first  # type: ignore[attr-defined]
    assert second is not first
    assert second.Codec is not first.Codec
    working = codec("c", MetadataResponse, 12)
    message = random_message(MetadataResponse, 12, Random(0))
    data = working.encode(message)
    functions = importlib.import_module("kafka_msgs.codec.native").functions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafka_msgs.codec.native.extension", second)
        other = functions(working.plan, working.options)
    assert type(other.decode.__self__) is second.Codec
    del second
    gc.collect()
    assert other.decode(data) == message
    del other
    gc.collect()
    assert working.decode(data) == message


INTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

WORK = '''
import os
import sys
sys.path[:] = {path!r}
if "KAFKA_MSGS_TEST_CORE" in os.environ:
    import tests.support.instrumented
from random import Random
import kafka_msgs
from kafka_msgs.testing.random_values import random_message
assert kafka_msgs.backend() == "c", kafka_msgs.backend()
for name, version in (("MetadataResponse", 12), ("FetchResponse", 16), ("OffsetFetchRequest", 10)):
    cls = getattr(kafka_msgs, name)
    for seed in range(20):
        message = random_message(cls, version, Random(seed))
        data = message.encode(version)
        assert cls.decode(data, version) == message
        try:
            cls.decode(data + bytes(1), version)
        except kafka_msgs.errors.TrailingDataError:
            pass
        else:
            raise AssertionError(name)
'''.format(path=sys.path)

def run(number, source=WORK):
    failure = interpreters.run_string(number, source)
    if failure is not None:
        raise SystemExit(str(failure))

exec(WORK)
for _ in range(3):
    one, two = interpreters.create(), interpreters.create()
    run(one)
    run(two)
    run(one)
    interpreters.destroy(one)
    run(two)
    interpreters.destroy(two)
    exec(WORK)
print("all interpreters agree")
"""


@NATIVE
def test_interpreters_have_a_core_each() -> None:
    """Interpreters start and end in one subprocess. They never see objects and memos of each other."""
    if not any(importlib.util.find_spec(name) for name in ("_interpreters", "_xxsubinterpreters")):
        pytest.skip("this Python has no module for interpreters")
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETERS],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "KAFKA_MSGS_BACKEND": "c"},
    )
    assert (done.returncode, done.stdout) == (0, "all interpreters agree\n"), done.stderr[-2000:]
