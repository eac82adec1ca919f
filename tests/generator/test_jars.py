"""Untrusted jars: bombs, entries with outside paths, damaged archives and classes. Reading a jar never runs its
code.
"""

from __future__ import annotations

import shutil
import stat
import subprocess
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator import jar as jar_module
from kafka_msgs_generator.class_file import ClassFile, ClassFileError, parse_class
from kafka_msgs_generator.compiler import compile_text
from kafka_msgs_generator.error_table import KafkaError, read_errors
from kafka_msgs_generator.importer import import_path
from kafka_msgs_generator.jar import MAX_ENTRY_BYTES, MAX_TOTAL_BYTES, open_jar
from kafka_msgs_generator.maven import SourceUnavailableError
from tests.support.class_files import empty_class, errors_class, errors_of_kafka
from tests.support.skip_reasons import not_run

DEFINITION = '{"name": "A", "type": "data", "validVersions": "0", "flexibleVersions": "none", "fields": []}'
PLACE = "common/message/A.json"
ERRORS = "org/apache/kafka/common/protocol/Errors.class"


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    return tmp_path / "kafka-clients-9.9.9.jar"


def write(jar: Path, *entries: tuple[str | zipfile.ZipInfo, str | bytes]) -> Path:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
    return jar


def refusal(jar: Path, into: Path) -> str:
    with pytest.raises(SourceUnavailableError) as caught:
        import_path(jar, into)
    assert not into.exists()
    return str(caught.value)


def test_an_entry_that_expands_beyond_the_limit_is_refused_before_it_is_in_memory(jar: Path, tmp_path: Path) -> None:
    write(jar, (PLACE, bytes(64 << 20)))
    assert jar.stat().st_size < 100_000
    tracemalloc.start()
    reason = refusal(jar, tmp_path / "defs")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reason.startswith(
        f"kafka-clients-9.9.9.jar is refused: {PLACE} expands to more than {MAX_ENTRY_BYTES} bytes"
    )
    assert peak < 8 * MAX_ENTRY_BYTES


def test_entries_that_expand_together_beyond_the_limit_are_refused(jar: Path, tmp_path: Path) -> None:
    full = b" " * MAX_ENTRY_BYTES
    write(jar, *((f"common/message/A{number}.json", full) for number in range(MAX_TOTAL_BYTES // MAX_ENTRY_BYTES + 1)))
    assert "expands to more than 0 bytes" in refusal(jar, tmp_path / "defs")


def test_a_jar_of_too_many_entries_or_bytes_is_refused(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(jar, *((f"{number}.class", b"") for number in range(4)))
    monkeypatch.setattr(jar_module, "MAX_ENTRIES", 3)
    assert "it has 4 entries, more than 3" in refusal(jar, tmp_path / "defs")
    monkeypatch.setattr(jar_module, "MAX_JAR_BYTES", 100)
    assert "it is larger than" in refusal(jar, tmp_path / "defs")


@pytest.mark.parametrize(
    "name", ["/common/message/A.json", "../message/A.json", "a/../../message/A.json", "..\\A.json"]
)
def test_an_entry_outside_of_the_jar_is_refused(jar: Path, tmp_path: Path, name: str) -> None:
    assert f"its entry {name!r} lies outside of the jar" in refusal(write(jar, (name, DEFINITION)), tmp_path / "defs")


def test_a_symbolic_link_in_a_jar_is_refused(jar: Path, tmp_path: Path) -> None:
    link = zipfile.ZipInfo(PLACE)
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert f"its entry '{PLACE}' is a symbolic link" in refusal(write(jar, (link, "/etc/hostname")), tmp_path / "defs")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries_of_one_name_are_refused(jar: Path, tmp_path: Path) -> None:
    assert "several entries of one name" in refusal(
        write(jar, (PLACE, DEFINITION), (PLACE, DEFINITION)), tmp_path / "defs"
    )


def test_a_damaged_jar_is_refused_or_read(jar: Path) -> None:
    """Damage in unread bytes may go undetected; the only possible error is the documented one."""
    files = errors_of_kafka({"LOST": (7, True), "BROKEN": (-1, False)})
    whole = write(jar, (PLACE, DEFINITION), *files.items()).read_bytes()
    rng = Random(1)
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        jar.write_bytes(damaged[: rng.choice([len(damaged), rng.randrange(len(damaged))])])
        try:
            with open_jar(jar) as opened:
                contents = [opened.read(name) for name in opened]
                read_errors(opened)
        except SourceUnavailableError:
            continue
        assert contents


def test_error_codes_are_read_from_the_class(jar: Path) -> None:
    with open_jar(write(jar, *errors_of_kafka({"LOST": (7, True), "BROKEN": (-1, False)}).items())) as opened:
        assert read_errors(opened) == [
            KafkaError(name="BROKEN", code=-1, retriable=False),
            KafkaError(name="LOST", code=7, retriable=True),
        ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a whole class file"),
        (b"\xca\xfe\xba\xbf" + bytes(8), "it starts with other bytes"),
        (errors_class([]), "does not create its constants one after the other"),
        (errors_class([("LOST", 7, "Lost")], before=b"\xa7\0\3"), "does not create its constants one after the other"),
        (empty_class("Errors", "java/lang/Enum"), "does not create its constants one after the other"),
    ],
    ids=["empty", "no class", "no error", "other code first", "no initializer"],
)
def test_a_class_that_is_no_error_table_is_refused(jar: Path, tmp_path: Path, content: bytes, reason: str) -> None:
    assert reason in refusal(write(jar, (PLACE, DEFINITION), (ERRORS, content)), tmp_path / "defs")


def test_exceptions_that_are_their_own_parents_are_refused(jar: Path, tmp_path: Path) -> None:
    name = "org/apache/kafka/common/errors/Lost"
    loop = (f"{name}.class", empty_class(name, name))
    write(jar, (PLACE, DEFINITION), (ERRORS, errors_class([("LOST", 7, "Lost")])), loop)
    assert "too many parents" in refusal(jar, tmp_path / "defs")


def test_damaged_classes_are_refused_or_read(jar: Path) -> None:
    whole = errors_of_kafka({"LOST": (7, True), "BROKEN": (-1, False)})[ERRORS]
    rng = Random(1)
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            found = parse_class(bytes(damaged[: rng.choice([len(damaged), rng.randrange(len(damaged))])]))
        except ClassFileError:
            continue
        assert isinstance(found, ClassFile)
        with open_jar(write(jar, (ERRORS, bytes(damaged)))) as opened, suppress(SourceUnavailableError):
            read_errors(opened)


def test_no_code_of_a_jar_runs(jar: Path, tmp_path: Path) -> None:
    """A class that leaves a trace when Java loads it is read, and leaves no trace."""
    javac = shutil.which("javac")
    if javac is None:
        not_run("javac not found")
    trace, source = tmp_path / "trace", tmp_path / "Errors.java"
    source.write_text(
        "package org.apache.kafka.common.protocol;\n"
        "public enum Errors {\n"
        '    NONE((short) 0, null, message -> null), LOST((short) 7, "Lost.", RuntimeException::new);\n'
        f'    static {{ try {{ java.nio.file.Files.createFile(java.nio.file.Path.of("{trace}")); }}'
        " catch (java.io.IOException error) { throw new RuntimeException(error); } }\n"
        "    Errors(int code, String message, java.util.function.Function<String, RuntimeException> maker) { }\n"
        "    public static void main(String[] arguments) { }\n"
        "}\n"
    )
    subprocess.run([javac, "-d", str(tmp_path / "classes"), str(source)], check=True)
    write(jar, (PLACE, DEFINITION), (ERRORS, (tmp_path / "classes" / ERRORS).read_bytes()))
    assert import_path(jar, tmp_path / "defs").errors == 2
    assert not trace.exists()
    subprocess.run(["java", "-cp", str(tmp_path / "classes"), "org.apache.kafka.common.protocol.Errors"], check=True)
    assert trace.exists()


def test_a_file_of_a_directory_that_is_too_large_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "A.json").write_bytes(b" " * (MAX_ENTRY_BYTES + 1))
    with pytest.raises(SourceUnavailableError, match=r"A\.json is not a definition: it is no regular file of at most"):
        import_path(tmp_path / "mine", tmp_path / "defs", "mine")


@pytest.mark.parametrize("name", ["INFO", "ClassVar", "UUID", "DataMessage"])
def test_a_struct_with_a_name_of_generated_code_is_refused(name: str) -> None:
    field = f'{{"name": "X", "type": "{name}", "versions": "0", "fields": []}}'
    with pytest.raises(SchemaError, match=f"'{name}' cannot name a struct: generated code uses that name itself"):
        compile_text(DEFINITION.replace("[]}", f"[{field}]}}"))
