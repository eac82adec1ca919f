"""Threads that share all objects get the same results as one thread. The normal suite runs a short version with the
GIL.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import attrs
import pytest

from kafka_msgs import CodecOptions, Message, compile_schema
from kafka_msgs._backend import BACKENDS, backend, backend_module
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.records import BatchBuilder, RecordBatch, read_batches
from tests.free_threading.threads import ROUNDS, THREADS, together
from tests.free_threading.works import works

WORKS = dict(works())

TEXT = """{"name": "Shared", "type": "data", "validVersions": "0-9", "flexibleVersions": "1+", "fields": [
  {"name": "Number", "type": "int64", "versions": "0+"}, {"name": "Name", "type": "string", "versions": "0+"},
  {"name": "Parts", "type": "[]Part", "versions": "0+", "fields": [
    {"name": "Ids", "type": "[]int32", "versions": "0+"}, {"name": "Old", "type": "bool", "versions": "0+"}]}]}"""


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this build has the GIL")
def test_the_core_runs_and_leaves_the_gil_off() -> None:
    assert BACKENDS[0] == "c"
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined]


def test_threads_do_all_at_once_on_shared_objects() -> None:
    """Each thread runs all work in a random order, and gets the results of a single thread."""
    expected = {name: work() for name, work in WORKS.items()}

    def work(number: int) -> int:
        rng, names = Random(number), list(WORKS)
        for _ in range(ROUNDS):
            rng.shuffle(names)
            for name in names:
                assert WORKS[name]() == expected[name], name
        return number

    assert together(work) == list(range(THREADS))


@pytest.mark.parametrize("name", WORKS)
def test_threads_do_the_same_at_once(name: str) -> None:
    expected = WORKS[name]()

    def work(number: int) -> bool:
        return all(WORKS[name]() == expected for _ in range(4 * ROUNDS))

    assert all(together(work))


def test_threads_use_a_class_that_nobody_has_used() -> None:
    """The first thread creates the codecs, the methods and the deferred attrs parts."""
    uses: list[Callable[[Any], Any]] = [
        lambda cls: cls(name="a").encode(0),
        lambda cls: attrs.fields(cls).name.default,
        lambda cls: cls.decode(cls(number=5).encode(3), 3).number,
        lambda cls: attrs.evolve(cls(number=5), number=6).number,
        lambda cls: hash(cls()) == hash(cls()),
        lambda cls: cls.from_json(cls(name="x").to_json(2), 2).name,
    ]
    for _ in range(2 * ROUNDS):
        cls = compile_schema(TEXT)
        found = together(lambda number: [use(cls) for use in uses[number:] + uses[:number]])  # noqa: B023
        in_order = [part[len(uses) - number :] + part[: len(uses) - number] for number, part in enumerate(found)]
        assert all(part == in_order[0] for part in in_order)


def test_threads_compile_the_same_definition() -> None:
    def work(number: int) -> list[bytes]:
        return [compile_schema(TEXT)(number=5).encode(1) for _ in range(2 * ROUNDS)]  # type: ignore[call-arg]

    assert len({data for made in together(work) for data in made}) == 1


def test_more_options_than_a_class_remembers() -> None:
    """Equal but distinct options, at versions that share a slot in the codec cache."""
    cls = compile_schema(TEXT)

    def work(number: int) -> bool:
        rng = Random(number)
        for _ in range(20 * ROUNDS):
            options, version = CodecOptions(memoryview_records=rng.random() < 0.5), rng.randrange(10)
            data = cls(number=version).encode(version, options=options)  # type: ignore[call-arg]
            assert cls.decode(data, version, options=options).number == version  # type: ignore[attr-defined]
        return True

    assert all(together(work))


def test_a_class_changes_while_threads_use_it() -> None:
    """One thread replaces ``__init__``, and later calls use the new one; existing instances stay unchanged."""
    for _ in range(ROUNDS):
        cls: Any = compile_schema(TEXT)
        kept = [cls(number=number) for number in range(20)]
        data = kept[5].encode(1)

        def init(self: Any, **given: Any) -> None:
            for name, value in {"number": -7, "name": "", "parts": (), "unknown_tagged_fields": ()}.items():
                object.__setattr__(self, name, value)

        def work(number: int) -> set[int]:
            if number == 0:
                cls.__init__ = init  # noqa: B023
            seen = {cls(number=8).number for _ in range(50)}  # noqa: B023
            assert [value.number for value in kept] == list(range(20))  # noqa: B023
            assert cls.decode(data, 1) == kept[5]  # noqa: B023
            assert len({*kept, *kept}) == 20  # noqa: B023
            return seen

        first, *others = together(work)
        assert first == {-7}
        assert set().union(*others) <= {8, -7}
        assert cls(number=8).number == -7


def test_a_builder_takes_the_records_of_all_threads() -> None:
    """Builders are not meant to be shared, but even then they lose and damage no records."""
    builder, each = BatchBuilder(), 30 * ROUNDS

    def work(number: int) -> int:
        taken = 0
        for turn in range(each):
            headers: Any = [("name", b"%d" % number)] if turn % 2 else ()
            try:
                taken += builder.append(b"%d" % number, b"v" * turn, timestamp=turn, headers=headers)
                if turn % 10 == 9:
                    builder.build()
            except (BufferError, ValueError, KafkaMsgsError):
                continue  # while another thread builds
        return taken

    taken = sum(together(work))
    assert builder.count == taken
    (batch,) = read_batches(builder.build())
    records = list(batch)
    assert [record.offset for record in records] == list(range(taken))
    assert all(record.value == b"v" * record.timestamp for record in records)


@pytest.mark.skipif(backend() != "c", reason="another backend was chosen")
def test_columns_of_records_are_filled_by_one_thread_at_a_time() -> None:
    pytest.importorskip("pyarrow")
    columns = backend_module("kafka_msgs.columns").RecordColumns(("offset", "value", "headers"))
    builder = BatchBuilder()
    for number in range(20):
        builder.append(b"key", b"value", headers=[("name", b"x")] * (number % 3))
    (batch,) = read_batches(builder.build())
    assert isinstance(batch, RecordBatch)
    run = batch.detach
    finished = count()

    def work(number: int) -> tuple[int, int]:
        added = removed = 0
        for turn in range(20 * ROUNDS):
            try:
                if turn % 7 == 6:
                    removed += len(columns.finish()[0])
                    next(finished)
                else:
                    added += 20 * (columns.extend(run, 0, 10**6, 10**9) == run.end)
            except RuntimeError:
                continue  # while another thread uses the columns
        return added, removed

    totals = together(work)
    left = len(columns.finish()[0])
    assert sum(added for added, _ in totals) == sum(removed for _, removed in totals) + left


def test_threads_import_messages_that_nobody_has_imported() -> None:
    """Runs in a separate process, since imports happen once."""
    import subprocess

    program = (
        "import os\n"
        "if 'KAFKA_MSGS_TEST_CORE' in os.environ: import tests.support.instrumented\n"
        "from tests.free_threading.threads import together\n"
        "from kafka_msgs import messages\n"
        "names = sorted(messages.__all__)[::9]\n"
        "found = together(lambda number: [getattr(messages, name)().INFO.name for name in names])\n"
        "assert all(each == found[0] for each in found)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_is_shared_is_a_message() -> None:
    assert issubclass(compile_schema(TEXT), Message)
