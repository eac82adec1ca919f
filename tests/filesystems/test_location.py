"""Locations: which texts are URIs, their parts, and their displayed form, which has no credentials."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_msgs.cli.command_group import command
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.location import Location, is_remote, mask_uri
from tests.support.recordings import GROUP_LOGS


@pytest.mark.parametrize(
    ("text", "scheme", "authority", "path", "query"),
    [
        ("/var/lib/kafka", "", "", "/var/lib/kafka", ""),
        ("logs", "", "", "logs", ""),
        ("C:/kafka", "", "", "C:/kafka", ""),
        ("a:b", "", "", "a:b", ""),
        ("file:/x", "file", "", "/x", ""),
        ("file:///x?", "file", "", "/x?", ""),
        ("FILE://localhost/x", "file", "localhost", "/x", ""),
        ("dbfs:/mnt/x", "dbfs", "", "/mnt/x", ""),
        ("hdfs:/x", "hdfs", "", "/x", ""),
        ("hdfs://node:8020/x", "hdfs", "node:8020", "/x", ""),
        ("s3a://bucket/x?region=r&scheme=http", "s3a", "bucket", "/x", "?region=r&scheme=http"),
        ("s3://bucket?region=r", "s3", "bucket", "", "?region=r"),
        ("s3://bucket/part-?", "s3", "bucket", "/part-?", ""),
        ("abfss://logs@lake.dfs.core.windows.net/x", "abfss", "logs@lake.dfs.core.windows.net", "/x", ""),
    ],
)
def test_a_scheme_of_two_letters_with_a_slash_makes_a_uri(
    text: str, scheme: str, authority: str, path: str, query: str
) -> None:
    found = Location.parse(text)
    assert (found.scheme, found.authority, found.path, found.query) == (scheme, authority, path, query)
    assert is_remote(text) == (not found.is_local) == (scheme not in ("", "file"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://AKID:hush@logs/x?session_token=hush&region=r", "s3://logs/x"),
        ("s3://AKID@logs/x?session_token=hu/sh+", "s3://logs/x"),
        ("abfs://logs@lake.dfs.core.windows.net/x", "abfs://logs@lake.dfs.core.windows.net/x"),
        ("abfs://a:hush@lake.dfs.core.windows.net/x", "abfs://lake.dfs.core.windows.net/x"),
        ("webhdfs://me:hush@node:9870/x/*-?", "webhdfs://node:9870/x/*-?"),
        ("/var/a?token=b", "/var/a?token=b"),
        ("file:/var/a?token=b", "file:/var/a?token=b"),
    ],
)
def test_the_displayed_form_has_no_credentials(text: str, shown: str) -> None:
    assert mask_uri(text) == shown
    assert "hush" not in Location.parse(text).shown + repr(Location.parse(text)) + Location.parse(text).identity


def test_urls_within_a_path_are_displayed_without_credentials() -> None:
    assert mask_uri("simplecache::s3://AKID:hush@logs/x") == "simplecache::s3://***@logs/x"


def test_the_identity_of_a_local_location_is_its_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {Location.parse(each).identity for each in ("logs", f"{tmp_path}/logs", f"file:{tmp_path}/logs")} == {
        str(tmp_path / "logs")
    }


def test_schemes_of_one_filesystem_have_one_identity() -> None:
    assert Location.parse("s3a://AKID:hush@logs/x/").identity == Location.parse("s3://logs/x").identity == "s3://logs/x"
    assert Location.parse("s3a://logs/x").root == "s3://logs"


def test_the_host_of_a_file_uri_is_this_machine() -> None:
    with pytest.raises(OptionError, match="'other' is the name of a host"):
        Location.parse("file://other/x")


@pytest.mark.parametrize("text", ["dbfs:/logs", "hdfs:/logs", "s3://bucket/logs", "s3://AKID:hush@bucket/logs"])
def test_the_local_engine_refuses_uris_instead_of_making_directories(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["pipeline", "group-state", text, "--out", "out", "--engine", "local"])
    assert done.exit_code == 1
    assert "directories of this machine only" in done.output
    assert "hush" not in done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_the_local_engine_reads_file_uris(form: str) -> None:
    JobInputs.at([form.format(GROUP_LOGS)]).check(["__consumer_offsets"])


@pytest.mark.parametrize("text", ["s3://AKID:hu/sh@bucket/x", "s3a://AKID:h/u/sh@bucket/x?scheme=http"])
def test_keys_with_slashes_that_are_not_escaped_are_not_shown(text: str) -> None:
    location = Location.parse(text)
    assert location.shown == f"{location.scheme}://***@bucket/x"
    assert location.identity == "s3://***@bucket/x"
    assert "h" not in mask_uri(location.root)


def test_a_port_is_shown() -> None:
    for text in ("hdfs://name:8020/a@b", "hdfs://[::1]:8020/a@b", "hdfs:///a:b@c"):
        assert Location.parse(text).shown == text
