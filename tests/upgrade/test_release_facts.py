"""The facts of releases: API versions and feature levels, compared with definitions and with Kafka's jars."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker.controller.image_types import SUPPORTED_FEATURES
from kafka_msgs.errors import OptionError
from kafka_msgs.messages import API_KEYS, RELEASE
from kafka_msgs.upgrade.feature_levels import feature_levels
from kafka_msgs.upgrade.release_versions import api_name, api_versions, known_releases, parse_release, version_span
from kafka_msgs.versions import VersionRange
from kafka_msgs_generator.definition_sets import read_definition_set
from kafka_msgs_generator.maven import SourceUnavailableError, fetch_existing_jars
from tests.oracle.build import PROJECT, OracleUnavailableError
from tests.oracle.older_releases import definitions_of
from tests.support.build_cache import made_once
from tests.support.skip_reasons import not_run

_PROGRAM: Final = Path(__file__).with_name("ReleaseFacts.java")


def versions_of(release: str) -> dict[int, str]:
    return {key: str(versions) for key, versions in api_versions(parse_release(release)).items()}


def test_removed_versions_of_kip_896() -> None:
    before, now = versions_of("3.9"), versions_of("4.0")
    assert (before[ApiKey.PRODUCE], now[ApiKey.PRODUCE]) == ("0-11", "3-12")
    assert (before[ApiKey.FETCH], now[ApiKey.FETCH]) == ("0-17", "4-17")
    since, removed = version_span(ApiKey.OFFSET_FETCH, 0) or (None, None)
    assert (str(since), str(removed)) == ("0.9", "4.0")


def test_versions_before_the_first_definitions() -> None:
    assert versions_of("0.10.2")[ApiKey.METADATA] == "0-2"
    assert versions_of("1.0")[ApiKey.PRODUCE] == "0-5"
    assert versions_of("2.5")[ApiKey.LIST_OFFSETS] == "0-5"  # before the API was renamed
    assert ApiKey.API_VERSIONS not in versions_of("0.9")


def test_the_last_release_is_the_release_of_the_messages() -> None:
    assert str(known_releases()[1]) + ".0" == RELEASE
    requests = {key for origin, kind, key in API_KEYS if (origin, kind) == ("clients", "request")}
    assert versions_of("4.4").keys() == requests
    assert feature_levels(parse_release("4.4")) == SUPPORTED_FEATURES
    assert api_name(9) == "OffsetFetch"
    assert api_name(9999) == "9999"
    assert api_name(4) == "LeaderAndIsr"


@pytest.mark.parametrize("text", ["", "4", "four", "4.x", "0.8", "4.5", "9.0.0", "4.4.", "1.2.3.4.5", "-4.4"])
def test_other_releases_are_refused(text: str) -> None:
    with pytest.raises(OptionError):
        parse_release(text)


@pytest.mark.parametrize("release", ["2.2.2", "2.8.2", "3.3.2", "3.9.1", "4.0.1", "4.1.1", "4.3.1"])
@pytest.mark.oracle
def test_the_versions_are_those_of_the_definitions(release: str) -> None:
    try:
        definitions = read_definition_set(str(definitions_of(release))).definitions
    except OracleUnavailableError as reason:
        not_run(str(reason))
    requests = [each.message for each in definitions.values() if each.message.kind == "request"]
    stated = {each.api_key: str(each.versions) for each in requests if not each.retired}
    assert versions_of(release) == stated


def printed(release: str, what: str, *artifacts: str) -> list[list[str]]:
    """Return what Kafka's own classes of a release state."""
    coordinates = [f"{group}:{release}" for group in artifacts] + ["org.slf4j:slf4j-api:1.7.36"]
    try:
        folder = made_once(
            PROJECT.target / f"facts-{what}-{release}", lambda new: fetch_existing_jars(coordinates, new)
        )
    except SourceUnavailableError as reason:
        not_run(str(reason))
    jars = os.pathsep.join(map(str, folder.glob("*.jar")))
    command = ["java", "-Xmx128m", "-cp", jars, str(_PROGRAM), what]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split() for line in lines]


@pytest.mark.parametrize("release", ["0.11.0.3", "1.0.2", "1.1.1", "2.0.1", "2.1.1"])
@pytest.mark.oracle
def test_the_versions_before_2_2_are_those_of_kafkas_classes(release: str) -> None:
    stated = {int(key): high for key, _, high in printed(release, "versions", "org.apache.kafka:kafka-clients")}
    found = {key: str(versions.highest) for key, versions in api_versions(parse_release(release)).items()}
    assert found == stated


@pytest.mark.parametrize("release", ["3.9.1", "4.0.1", "4.1.1", "4.2.0", "4.3.1", "4.4.0"])
@pytest.mark.oracle
def test_the_feature_levels_are_those_of_kafkas_classes(release: str) -> None:
    artifacts = ("org.apache.kafka:kafka-server-common", "org.apache.kafka:kafka-clients")
    stated = {
        name: VersionRange(int(low), int(high))
        for name, low, high in printed(release, "features", *artifacts)
        if "test.feature" not in name and high != "0"
    }
    assert feature_levels(parse_release(release)) == stated
