"""Misspelt names: every place that refuses an unknown option names the nearest known one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafka_msgs.broker import BrokerConfig, EmbeddedBroker, InitialData
from kafka_msgs.cli.command_group import command
from kafka_msgs.cli.connection_profiles import load_profile
from kafka_msgs.client import ClientConfig
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.client.producer import Producer
from kafka_msgs.errors import OptionError
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.suggestions import no_such, similar_names
from kafka_msgs.tables.factory import get_format


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("auto.offset.rest", "autoOffsetReset"),
        ("AUTO_OFFSET_RESET", "autoOffsetReset"),
        ("bootstrapserver", "bootstrap-servers"),
        ("zzz", None),
        ("", None),
    ],
)
def test_case_and_separators_do_not_count(name: str, nearest: str | None) -> None:
    assert similar_names(name, ("autoOffsetReset", "bootstrap-servers", "columns")) == ((nearest,) if nearest else ())


def test_a_few_known_names_are_listed_if_none_is_similar() -> None:
    assert no_such("format", "zzz", ("parquet", "delta")) == "there is no such format; known are delta, parquet"
    assert no_such("option", "zzz", map(str, range(1000))) == "there is no such option"
    assert no_such("option", "zzz", ()) == "there is no such option"


def test_a_long_name_takes_no_time() -> None:
    start = time.process_time()
    assert similar_names("ab" * 1_000_000, ("abab", "baba" * 20)) == ()
    assert time.process_time() - start < 1


def misspelt(name: str) -> dict[str, Any]:
    """Return a keyword argument, which type checkers would refuse if it were written out."""
    return {name: "x"}


def spark_option() -> None:
    options = Options("kafka-log", {"colums": "offset"})
    options.text("columns")
    options.done()


@pytest.mark.parametrize(
    ("refused", "nearest"),
    [
        (lambda: Consumer("localhost:1", **misspelt("group_idd")), "group_id"),
        (lambda: Producer("localhost:1", **misspelt("linger_mss")), "linger"),
        (lambda: ClientConfig.from_properties({"bootstrap.server": "localhost:1"}), "bootstrap.servers"),
        (lambda: Consumer({"bootstrap.servers": "localhost:1", "max.poll.record": "5"}), "max.poll.records"),
        (lambda: InitialData.from_dict({"topic": []}), "topics"),
        (lambda: EmbeddedBroker(BrokerConfig(configs={"num.partition": "1"})).start(), "num.partitions"),
        (lambda: get_format("parket"), "parquet"),
        (spark_option, "columns"),
    ],
)
def test_an_unknown_option_names_its_nearest_neighbour(refused: Callable[[], object], nearest: str) -> None:
    with pytest.raises(OptionError, match=rf"there is no such \w+( \w+)?; did you mean {nearest}"):
        refused()


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (("lag", "--prometeus"), "--prometheus"),
        (("pipeline", "group-offsets", "--fromat", "x"), "--format"),
        (("pipeline", "group-ofsets"), "group-offsets"),
        (("lgag",), "lag"),
        (("lag", "-b", "localhost:1", "-X", "client.idd=x"), "client.id"),
    ],
    ids=" ".join,
)
def test_an_unknown_word_on_the_command_line_names_its_nearest_neighbour(
    arguments: tuple[str, ...], nearest: str
) -> None:
    result = CliRunner().invoke(command, arguments, prog_name="kafka-msgs")
    assert result.exit_code in (1, 2)
    assert result.stderr.partition("id you mean ")[2].startswith((nearest, f"'{nearest}'?"))


def test_a_misspelt_profile_and_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text('[staging]\ntimeot = "5s"\n', encoding="utf-8")
    monkeypatch.setenv("KAFKA_MSGS_PROFILES", str(path))
    with pytest.raises(OptionError, match="there is no such profile; did you mean staging"):
        load_profile("stagin")
    with pytest.raises(OptionError, match="did you mean timeout"):
        load_profile("staging")
