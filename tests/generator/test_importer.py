"""Imports from jars, directories, checkouts and releases, without a network or Java; a stand-in replaces Maven."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator.error_table import KafkaError, error_table_text
from kafka_msgs_generator.importer import import_path, import_release
from kafka_msgs_generator.maven import SourceUnavailableError
from kafka_msgs_generator.release import ORIGINS
from tests.support.class_files import errors_of_kafka

COMMITTED = Path("message_defs")


def definition(name: str, fields: str = "") -> str:
    """Return the source text of a small definition."""
    return (
        f'{{ "name": "{name}", "type": "data", "validVersions": "0", "flexibleVersions": "none",\n'
        f'  // A comment.\n  "fields": [{fields}] }}\n'
    )


INT_FIELD = '{ "name": "Size", "type": "int32", "versions": "0+", "about": "How big." }'


def make_jar(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write a jar with ``files`` by their path inside."""
    with zipfile.ZipFile(path, "w") as jar:
        for name, text in files.items():
            jar.writestr(name, text)
    return path


def clients_jar(folder: Path, **definitions: str) -> Path:
    """Write a jar of the clients artifact."""
    files = {f"common/message/{name}.json": text for name, text in definitions.items()}
    return make_jar(folder / "kafka-clients-9.9.9.jar", files)


def tree(root: Path) -> dict[str, bytes]:
    """Return every file below ``root`` with its contents."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def source_toml(into: Path) -> dict[str, object]:
    """Read the generated ``SOURCE.toml``."""
    return tomllib.loads((into / "SOURCE.toml").read_text(encoding="utf-8"))


def test_a_jar_is_imported_by_its_name(tmp_path: Path) -> None:
    text = definition("Planet", INT_FIELD)
    jar = clients_jar(tmp_path, Planet=text, Moon=definition("Moon"))
    report = import_path(jar, tmp_path / "defs")
    assert (report.release, report.counts) == ("9.9.9", {"clients": 2})
    assert (report.added, report.changed, report.removed) == (("clients/Moon", "clients/Planet"), (), ())
    assert "about" not in (tmp_path / "defs/kafka/clients/Planet.json").read_text(encoding="utf-8")
    assert source_toml(tmp_path / "defs")["origins"] == {
        "clients": {
            "release": "9.9.9",
            "artifact": "kafka-clients-9.9.9.jar",
            "sha256": hashlib.sha256(jar.read_bytes()).hexdigest(),
            "files": {
                "Moon": hashlib.sha256(definition("Moon").encode()).hexdigest(),
                "Planet": hashlib.sha256(text.encode()).hexdigest(),
            },
        }
    }


def test_only_files_in_folders_of_definitions_are_taken_from_a_jar(tmp_path: Path) -> None:
    files = {"common/metadata/A.json": definition("A"), "B.json": "{}", "common/message/README.md": "prose"}
    jar = make_jar(tmp_path / "kafka-metadata-1.2.jar", files)
    assert import_path(jar, tmp_path / "defs").added == ("metadata/A",)


def test_a_file_is_named_after_its_message(tmp_path: Path) -> None:
    import_path(clients_jar(tmp_path, OldName=definition("NewName")), tmp_path / "defs")
    assert sorted(tree(tmp_path / "defs")) == ["SOURCE.toml", "kafka/clients/NewName.json"]


def test_importing_again_writes_nothing(tmp_path: Path) -> None:
    jar, into = clients_jar(tmp_path, A=definition("A")), tmp_path / "defs"
    import_path(jar, into)
    for path in (into / "SOURCE.toml", into / "kafka/clients/A.json"):
        os.utime(path, (1, 1))
    report = import_path(jar, into)
    assert (report.added, report.changed, report.removed) == ((), (), ())
    assert {path.stat().st_mtime for path in into.rglob("*") if path.is_file()} == {1}


def test_a_later_import_changes_and_removes_what_it_wrote_and_spares_the_rest(tmp_path: Path) -> None:
    into = tmp_path / "defs"
    import_path(clients_jar(tmp_path, A=definition("A"), B=definition("B")), into)
    by_hand = into / "kafka/clients/Mine.json"
    by_hand.write_text("{}", encoding="utf-8")
    report = import_path(clients_jar(tmp_path, A=definition("A", INT_FIELD), C=definition("C")), into)
    assert (report.added, report.changed, report.removed) == (("clients/C",), ("clients/A",), ("clients/B",))
    assert sorted(path.stem for path in (into / "kafka/clients").iterdir()) == ["A", "C", "Mine"]


def test_an_import_touches_its_own_origin_only(tmp_path: Path) -> None:
    into = tmp_path / "defs"
    import_path(make_jar(tmp_path / "kafka-raft-1.0.jar", {"common/message/R.json": definition("R")}), into)
    report = import_path(clients_jar(tmp_path, A=definition("A")), into)
    assert (report.release, report.removed) == ("9.9.9", ())
    import_path(tmp_path / "kafka-raft-1.0.jar", tmp_path / "raft")
    (tmp_path / "kafka-raft-1.0.jar").rename(tmp_path / "kafka-metadata-1.1.jar")
    assert import_path(tmp_path / "kafka-metadata-1.1.jar", tmp_path / "raft").release == "mixed"
    assert sorted(tree(into)) == ["SOURCE.toml", "kafka/clients/A.json", "kafka/raft/R.json"]


def test_nothing_is_written_when_a_definition_cannot_be_read(tmp_path: Path) -> None:
    jar = clients_jar(tmp_path, A=definition("A"), B='{"name": "B", "colour": "red"}')
    with pytest.raises(SchemaError, match=r"clients/B\.json:1:15: B: unknown key 'colour'"):
        import_path(jar, tmp_path / "defs")
    assert not (tmp_path / "defs").exists()


def test_one_message_in_two_files_of_an_origin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"clients/B\.json: A is defined in another file, too"):
        import_path(clients_jar(tmp_path, A=definition("A"), B=definition("A")), tmp_path / "defs")


@pytest.mark.parametrize("name", ["../../etc/cron", "", "a b"])
def test_a_message_name_that_is_not_a_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SchemaError, match="cannot name a message"):
        import_path(clients_jar(tmp_path, A=definition(name)), tmp_path / "defs")


def test_a_checkout_tells_origins_by_module(tmp_path: Path) -> None:
    checkout = tmp_path / "kafka"
    files = {
        "clients/src/main/resources/common/message/A.json": definition("A"),
        "storage/src/main/resources/message/S.json": definition("S"),
        "clients/src/test/resources/common/message/T.json": definition("T"),
        "connect/src/main/resources/settings.json": "{}",
        "gradle.properties": "group=org.apache.kafka\nversion=4.5.0-SNAPSHOT\n",
    }
    for name, text in files.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text, encoding="utf-8")
    report = import_path(checkout, tmp_path / "defs")
    assert (report.release, report.added) == ("4.5.0-SNAPSHOT", ("clients/A", "storage/S"))


def test_a_directory_needs_an_origin(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/A.json").write_text(definition("A"), encoding="utf-8")
    with pytest.raises(SourceUnavailableError, match="name their origin"):
        import_path(tmp_path / "mine", tmp_path / "defs")
    report = import_path(tmp_path / "mine", tmp_path / "defs", "my-service")
    assert (report.release, report.added) == ("unknown", ("my-service/A",))
    assert source_toml(tmp_path / "defs")["release"] == "unknown"


@pytest.mark.parametrize(
    ("name", "content", "origin", "reason"),
    [
        ("nothing.jar", None, None, "neither a jar nor a directory"),
        ("other-1.0.jar", b"PK", None, "not a known artifact"),
        ("kafka-raft-1.0.jar", b"no zip", None, "cannot be read as a jar"),
        ("kafka-raft-1.0.jar", b"no zip", "../raft", "cannot name an origin"),
    ],
)
def test_a_source_that_cannot_be_used_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes | None, origin: str | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceUnavailableError, match=reason):
        import_path(tmp_path / name, tmp_path / "defs", origin)


def test_a_jar_without_definitions_and_one_that_is_not_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match="no message definitions in"):
        import_path(make_jar(tmp_path / "kafka-raft-1.0.jar", {"x.txt": ""}), tmp_path / "defs")
    with zipfile.ZipFile(tmp_path / "kafka-raft-1.0.jar", "w") as jar:
        jar.writestr("common/message/A.json", b'{"name": "\xff"}')
    with pytest.raises(SourceUnavailableError, match=r"A\.json is not UTF-8: byte 10"):
        import_path(tmp_path / "kafka-raft-1.0.jar", tmp_path / "defs")


MAVEN = """
import re, shutil, sys
from pathlib import Path

into = Path(next(each for each in sys.argv if each.startswith("-DoutputDirectory=")).partition("=")[2])
names = r"<dependency>\\s*<groupId>([^*<]+)</groupId>\\s*<artifactId>([^*<]+)</artifactId>\\s*<version>(.+?)</version>"
into.mkdir(exist_ok=True)
failed = []
for pom in Path(sys.argv[sys.argv.index("-f") + 1]).glob("*/pom.xml"):
    (group, name, version), = re.findall(names, pom.read_text())
    jar = JARS / f"{name}-{version}.jar"
    if jar.exists():
        shutil.copy(jar, into)
    else:
        reason = REASON.format(f"{group}:{name}:jar:{version}")
        failed.append(f"[ERROR] Failed to execute goal on project {pom.parent.name}: Could not resolve: {reason}")
if failed:
    sys.exit("\\n".join(failed))
"""
"""A stand-in for Maven that copies from a folder, and reports each missing jar as Maven does."""


def install_maven(tools: Path, jars: Path, reason: str = "Could not find artifact {} in central") -> None:
    """Install a Maven stand-in whose repository is a folder, with its message for a missing jar."""
    jars.mkdir(exist_ok=True)
    path = tools / "mvn"
    path.write_text(
        f"#!{sys.executable}\nfrom pathlib import Path\nJARS, REASON = Path({str(jars)!r}), {reason!r}{MAVEN}"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def make_release(jars: Path, release: str, artifacts: Mapping[str, str]) -> None:
    """Write the jars of a release, each with one definition; the clients jar has an error table of two codes."""
    jars.mkdir(exist_ok=True)
    for artifact, name in artifacts.items():
        files: dict[str, str | bytes] = {f"common/message/{name}.json": definition(name)}
        if artifact == "kafka-clients":
            files |= errors_of_kafka({"LOST": (7, True), "BROKEN": (-1, False)})
        make_jar(jars / f"{artifact}-{release}.jar", files)


NEWEST = {origin: artifacts[0].artifact for origin, artifacts in ORIGINS.items()}
WHOLE = {artifact: origin.title().replace("-", "") for origin, artifact in NEWEST.items()}


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that contains all available commands: no Java."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_a_release_is_fetched_with_every_origin_and_its_errors(tmp_path: Path, tools: Path) -> None:
    make_release(tmp_path / "jars", "9.9.9", WHOLE)
    install_maven(tools, tmp_path / "jars")
    report = import_release("9.9.9", tmp_path / "defs")
    assert report.counts == dict.fromkeys(ORIGINS, 1)
    assert (report.kept, report.errors) == ({}, 2)
    assert json.loads((tmp_path / "defs/errors.json").read_text(encoding="utf-8")) == [
        {"name": "BROKEN", "code": -1, "retriable": False},
        {"name": "LOST", "code": 7, "retriable": True},
    ]
    origins = source_toml(tmp_path / "defs")["origins"]
    assert isinstance(origins, dict)
    assert origins["raft"]["artifact"] == "org.apache.kafka:kafka-raft:9.9.9"


def test_an_origin_that_a_release_lacks_keeps_what_it_has(tmp_path: Path, tools: Path) -> None:
    jars, into = tmp_path / "jars", tmp_path / "defs"
    make_release(jars, "9.9.8", WHOLE)
    lacking = ("kafka-streams", "kafka-share-coordinator")
    make_release(jars, "9.9.9", {artifact: name for artifact, name in WHOLE.items() if artifact not in lacking})
    install_maven(tools, jars)
    first = import_release("9.9.9", into)
    assert first.kept == {"share-coordinator": None, "streams": None}
    import_release("9.9.8", into)
    report = import_release("9.9.9", into)
    assert report.kept == {"share-coordinator": "9.9.8", "streams": "9.9.8"}
    assert (report.release, report.removed) == ("9.9.9", ())
    source = source_toml(into)
    assert isinstance(source["origins"], dict)
    assert {origin: facts["release"] for origin, facts in source["origins"].items()} == {
        **dict.fromkeys(ORIGINS, "9.9.9"),
        **dict.fromkeys(report.kept, "9.9.8"),
    }
    assert (into / "kafka/streams/Streams.json").exists()


def test_an_origin_is_taken_from_the_artifact_that_carried_it_then(tmp_path: Path, tools: Path) -> None:
    artifacts = {artifact: name for artifact, name in WHOLE.items() if not artifact.endswith("-coordinator")}
    make_release(tmp_path / "jars", "2.9.9", artifacts)
    names = ("GroupMetadataKey", "OffsetCommitKey", "TransactionLogKey")
    core = {f"common/message/{name}.json": definition(name) for name in names}
    make_jar(tmp_path / "jars/kafka_2.13-2.9.9.jar", core)
    install_maven(tools, tmp_path / "jars")
    report = import_release("2.9.9", tmp_path / "defs")
    assert report.kept == {"share-coordinator": None}
    moved = ["group-coordinator/GroupMetadataKey", "group-coordinator/OffsetCommitKey"]
    moved += ["transaction-coordinator/TransactionLogKey"]
    assert [name for name in report.added if "coordinator" in name] == moved
    assert import_path(tmp_path / "jars/kafka_2.13-2.9.9.jar", tmp_path / "core").added == tuple(moved)


def test_a_jar_that_cannot_be_fetched_does_not_count_as_lacking(tmp_path: Path, tools: Path) -> None:
    make_release(tmp_path / "jars", "9.9.9", {"kafka-clients": "A"})
    install_maven(tools, tmp_path / "jars", "Could not transfer artifact {} from central: timed out")
    with pytest.raises(SourceUnavailableError, match=r"does not report whether org\.apache\.kafka:kafka-group-c"):
        import_release("9.9.9", tmp_path / "defs")
    assert not (tmp_path / "defs").exists()


def test_what_is_not_a_release_of_kafka_is_refused(tmp_path: Path, tools: Path) -> None:
    install_maven(tools, tmp_path / "jars")
    with pytest.raises(SourceUnavailableError) as caught:
        import_release("9.9.9", tmp_path / "defs")
    artifact = "org.apache.kafka:kafka-clients:9.9.9"
    assert str(caught.value) == f"Maven cannot find {artifact}: is 9.9.9 a release of Kafka?"
    assert not (tmp_path / "defs").exists()


def test_the_error_table_follows_a_jar_of_the_clients(tmp_path: Path, tools: Path) -> None:
    jars, into = tmp_path / "jars", tmp_path / "defs"
    make_release(jars, "9.9.9", WHOLE)
    install_maven(tools, jars)
    assert import_path(jars / "kafka-raft-9.9.9.jar", into).errors is None
    assert not (into / "errors.json").exists()
    assert import_path(jars / "kafka-clients-9.9.9.jar", into).errors == 2
    assert [error["name"] for error in json.loads((into / "errors.json").read_text())] == ["BROKEN", "LOST"]


@pytest.mark.parametrize("release", ["LATEST", "", "4.4.0</version>"])
def test_text_that_is_not_a_release_is_refused(tmp_path: Path, release: str) -> None:
    with pytest.raises(SourceUnavailableError, match="is not a release"):
        import_release(release, tmp_path / "defs")


@pytest.mark.usefixtures("tools")
def test_a_missing_maven_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=r"needs Maven \(mvn\), which is not installed"):
        import_release("9.9.9", tmp_path / "defs")


def test_error_tables_are_written_one_a_line_by_code() -> None:
    errors = [KafkaError(name="A", code=-1, retriable=True), KafkaError(name="C", code=3, retriable=False)]
    text = error_table_text(errors)
    assert text.splitlines()[1:3] == [
        '  {"name": "A", "code": -1, "retriable": true},',
        '  {"name": "C", "code": 3, "retriable": false}',
    ]


def test_the_committed_source_lists_exactly_the_committed_files() -> None:
    origins = source_toml(COMMITTED)["origins"]
    assert isinstance(origins, dict)
    listed = {f"{origin}/{name}" for origin, facts in origins.items() for name in facts["files"]}
    present = {f"{path.parent.name}/{path.stem}" for path in (COMMITTED / "kafka").glob("*/*.json")}
    assert listed == present
    assert set(origins) == set(ORIGINS)
    assert source_toml(COMMITTED)["release"] == origins["clients"]["release"]


def test_the_committed_errors_are_those_that_clients_act_on() -> None:
    errors = json.loads((COMMITTED / "errors.json").read_text(encoding="utf-8"))
    codes = {error["name"]: error["code"] for error in errors}
    retriable = {error["name"] for error in errors if error["retriable"]}
    assert list(codes.values()) == sorted(set(codes.values()))
    assert (codes["UNKNOWN_SERVER_ERROR"], codes["NONE"], codes["NOT_COORDINATOR"]) == (-1, 0, 16)
    assert (codes["STREAMS_INVALID_TOPOLOGY"], codes["STREAMS_TOPOLOGY_FENCED"]) == (130, 132)
    assert {"COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "UNSTABLE_OFFSET_COMMIT"} <= retriable
    assert not {"NONE", "GROUP_AUTHORIZATION_FAILED", "INVALID_REQUEST"} & retriable


def test_every_error_that_a_message_supports_has_a_code() -> None:
    errors = json.loads((COMMITTED / "errors.json").read_text(encoding="utf-8"))
    definitions = [json.loads(path.read_text(encoding="utf-8")) for path in COMMITTED.glob("*/*/*.json")]
    supported = {item["name"]: set(item["supportedErrors"]) for item in definitions if "supportedErrors" in item}
    assert set().union(*supported.values()) <= {error["name"] for error in errors}
    assert len(supported["StreamsGroupHeartbeatResponse"]) == 15
