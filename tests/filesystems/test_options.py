"""Hadoop settings as arguments of Arrow filesystems, precedence of the two sources, and hidden secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafka_msgs.cli.command_group import command
from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.arrow_arguments import arguments_of, is_known, parameters_of
from kafka_msgs.filesystems.location import Location
from kafka_msgs.filesystems.options import FilesystemOptions

ACCOUNT = "lake.dfs.core.windows.net"
KEY_OF_ACCOUNT = f"fs.azure.account.key.{ACCOUNT}"
TENANT = "https://login.microsoftonline.com/0a1b/oauth2/token"


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        (
            {"fs.s3a.access.key": "A", "fs.s3a.secret.key": "S", "fs.s3a.session.token": "T"},
            {"access_key": "A", "secret_key": "S", "session_token": "T"},
        ),
        ({"fs.s3a.endpoint": "127.0.0.1:9000"}, {"endpoint_override": "127.0.0.1:9000"}),
        ({"fs.s3a.endpoint": "http://minio:9000/"}, {"endpoint_override": "minio:9000", "scheme": "http"}),
        (
            {"fs.s3a.endpoint": "minio", "fs.s3a.connection.ssl.enabled": "false"},
            {"endpoint_override": "minio", "scheme": "http"},
        ),
        ({"fs.s3a.endpoint": "https://minio", "fs.s3a.connection.ssl.enabled": "false"}, {"scheme": "https"}),
        ({"fs.s3a.endpoint": "s3.eu-central-1.amazonaws.com"}, {"region": "eu-central-1"}),
        ({"fs.s3a.endpoint": "s3.amazonaws.com"}, {}),
        ({"fs.s3a.endpoint.region": "eu-west-1"}, {"region": "eu-west-1"}),
        ({"fs.s3a.path.style.access": "true"}, {"force_virtual_addressing": False}),
        ({"fs.s3a.bucket.logs.endpoint": "a:1", "fs.s3a.endpoint": "b:2"}, {"endpoint_override": "a:1"}),
        ({"fs.s3a.bucket.other.endpoint": "a:1", "fs.s3a.endpoint": "b:2"}, {"endpoint_override": "b:2"}),
        (
            {
                "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
                "fs.s3a.access.key": "A",
            },
            {"anonymous": True},
        ),
        ({"fs.s3a.assumed.role.arn": "arn:aws:iam::1:role/r"}, {"role_arn": "arn:aws:iam::1:role/r"}),
    ],
)
def test_settings_of_s3a(given: dict[str, str], arguments: dict[str, Any]) -> None:
    found = arguments_of(Location.parse("s3a://logs"), given)
    assert {name: found.get(name) for name in arguments} == arguments
    assert found.keys() <= {*arguments, "endpoint_override", "scheme"}


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({f"fs.azure.account.key.{ACCOUNT}": "K"}, {"account_key": "K"}),
        ({"fs.azure.account.key.other.dfs.core.windows.net": "K"}, {}),
        ({"fs.azure.account.key": "J", f"fs.azure.account.key.{ACCOUNT}": "K"}, {"account_key": "K"}),
        ({f"fs.azure.sas.fixed.token.{ACCOUNT}": "?sv=1"}, {"sas_token": "?sv=1"}),
        (
            {
                f"fs.azure.account.oauth2.client.id.{ACCOUNT}": "I",
                f"fs.azure.account.oauth2.client.secret.{ACCOUNT}": "S",
                f"fs.azure.account.oauth2.client.endpoint.{ACCOUNT}": TENANT,
            },
            {"client_id": "I", "client_secret": "S", "tenant_id": "0a1b"},
        ),
    ],
)
def test_settings_of_abfs(given: dict[str, str], arguments: dict[str, Any]) -> None:
    assert arguments_of(Location.parse(f"abfs://box@{ACCOUNT}"), given) == arguments


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({"fs.gs.auth.type": "UNAUTHENTICATED"}, {"anonymous": True}),
        ({"fs.gs.auth.type": "APPLICATION_DEFAULT"}, {"anonymous": False}),
        ({"google.cloud.auth.null.enable": "true"}, {"anonymous": True}),
        (
            {"fs.gs.storage.root.url": "http://127.0.0.1:4443/"},
            {"endpoint_override": "127.0.0.1:4443", "scheme": "http"},
        ),
        ({"fs.gs.auth.impersonation.service.account": "a@b"}, {"target_service_account": "a@b"}),
    ],
)
def test_settings_of_gs(given: dict[str, str], arguments: dict[str, Any]) -> None:
    assert arguments_of(Location.parse("gs://bucket"), given) == arguments


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fs.s3a.connection.ssl.enabled", "perhaps"),
        ("fs.s3a.endpoint", "http://user@host/path"),
        ("fs.s3a.path.style.access", ""),
    ],
)
def test_a_value_that_means_nothing_is_named_by_its_setting(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=name):
        arguments_of(Location.parse("s3a://logs"), {name: value})


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        ({"fs.s3a.endpoint": "a"}, {"fs.s3a.endpoint": "b"}, {"fs.s3a.endpoint": "a"}),
        ({"fs.s3a.endpoint": "a"}, {"fs.s3a.bucket.logs.endpoint": "b"}, {"fs.s3a.endpoint": "a"}),
        (
            {"fs.azure.sas.fixed.token": "a"},
            {f"fs.azure.account.key.{ACCOUNT}": "b"},
            {"fs.azure.sas.fixed.token": "a"},
        ),
        (
            {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "a"},
            {"fs.s3a.session.token": "b", "fs.s3a.bucket.logs.secret.key": "b", "fs.s3a.endpoint": "b"},
            {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "a", "fs.s3a.endpoint": "b"},
        ),
        ({}, {"spark.master": "x", "fs.s3a.endpoint": "b"}, {"fs.s3a.endpoint": "b"}),
    ],
)
def test_an_option_has_precedence_and_credentials_are_not_mixed(
    ours: dict[str, str], theirs: dict[str, str], both: dict[str, str]
) -> None:
    assert dict(FilesystemOptions.from_mapping(ours).over(FilesystemOptions.select(theirs)).items) == both


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("fs.s3a.secret.key", True),
        ("fs.s3a.secret.kye", False),
        ("fs.s3a.bucket.my.logs.secret.key", True),
        ("fs.s3a.bucket.logs.secrets", False),
        (f"fs.azure.account.key.{ACCOUNT}", True),
        ("dfs.ha.namenodes.cluster", True),
        ("fs.defaultfs", True),
        ("storage.user", True),
        ("path", False),
    ],
)
def test_names_that_have_a_meaning(name: str, known: bool) -> None:
    assert is_known(name) is known


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("fs.s3a.secret.kye", "fs.s3a.secret.key"),
        ("fs.s3a.bucket.logs.secret.kye", "fs.s3a.bucket.logs.secret.key"),
        ("fs.s3a.endpiont.region", "fs.s3a.endpoint.region"),
        (f"fs.azure.acount.key.{ACCOUNT}", KEY_OF_ACCOUNT),
        ("fs.gs.auth.typ", "fs.gs.auth.type"),
        ("google.cloud.auth.tpye", "google.cloud.auth.type"),
        ("s3a.endpoint", "fs.s3a.endpoint"),
    ],
)
def test_a_misspelt_option_is_refused_with_the_nearest_name_and_without_its_value(name: str, meant: str) -> None:
    with pytest.raises(OptionError, match=re.escape(f"did you mean {meant}?")) as caught:
        FilesystemOptions.from_mapping({"fs.s3a.access.key": "A", name: "hush"}, "a test")
    assert "hush" not in str(caught.value)


def test_a_command_refuses_a_misspelt_option(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["tables", str(tmp_path), "--conf", "fs.s3a.endpiont=x"])
    assert done.exit_code
    assert "did you mean fs.s3a.endpoint?" in " ".join(done.output.split())


def test_an_option_of_another_program_is_refused_unless_it_comes_from_its_configuration() -> None:
    given = {"fs.s3a.threads.max": "64"}
    with pytest.raises(OptionError, match=r"fs\.s3a\.threads\.max: there is no such option"):
        FilesystemOptions.from_mapping(given)
    assert dict(FilesystemOptions.from_spark_conf({"spark.hadoop.fs.s3a.threads.max": "64"}).items) == given


def test_keys_in_a_uri_have_precedence() -> None:
    given = {"fs.s3a.access.key": "A", "fs.s3a.secret.key": "S", "fs.s3a.endpoint": "a:1"}
    found = arguments_of(Location.parse("s3a://B:x%2Fy@logs/p?endpoint_override=b:2"), given)
    assert found == {"access_key": "B", "secret_key": "x/y", "endpoint_override": "b:2"}


def test_parameters_of_a_uri_are_texts_and_flags() -> None:
    assert parameters_of("?region=eu-west-1&allow_bucket_creation=true") == {
        "region": "eu-west-1",
        "allow_bucket_creation": True,
    }


def test_settings_are_taken_from_the_configuration_of_spark() -> None:
    conf = {"spark.hadoop.fs.s3a.endpoint": "a", "fs.s3a.endpoint": "b", "spark.hadoop.io.file.buffer.size": "1"}
    assert dict(FilesystemOptions.from_spark_conf(conf).items) == {"fs.s3a.endpoint": "a"}


def test_secrets_are_not_shown() -> None:
    given = FilesystemOptions.from_mapping(
        {"fs.s3a.secret.key": "hush+hush", f"fs.azure.account.key.{ACCOUNT}": "quiet", "storage.user": "me"}
    )
    assert "hush" not in repr(given)
    assert given.mask_secrets("hush+hush and quiet, said me") == "*** and ***, said me"
