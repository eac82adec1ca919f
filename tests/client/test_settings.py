"""The table of settings: every client accepts the same names, refuses unknown names, and displays no secrets."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import fields_dict

from kafka_msgs.admin import Admin, AsyncAdmin
from kafka_msgs.client import (
    AsyncClient,
    AsyncConsumer,
    AsyncProducer,
    Client,
    ClientConfig,
    Consumer,
    ConsumerConfig,
    Producer,
    ProducerConfig,
)
from kafka_msgs.client.config_loading import load_config
from kafka_msgs.client.property_parsing import resolve_names
from kafka_msgs.client.property_table import IGNORED, SETTINGS, UNSUPPORTED, Setting, find_setting, is_ignored
from kafka_msgs.errors import KafkaMsgsError, OptionError

SECRET = "s3cret"
CLIENTS = [Client, AsyncClient, Admin, AsyncAdmin, Consumer, AsyncConsumer, Producer, AsyncProducer]
each_client = pytest.mark.parametrize("cls", CLIENTS, ids=lambda cls: cls.__name__)


def build(cls: type[Any], servers: Any = "localhost:1", **keywords: Any) -> ClientConfig:
    """Create a client of any kind, close it, and return its config."""

    async def in_loop() -> ClientConfig:
        made = cls(servers, **keywords)
        await made.close()
        return _config(made)

    if cls.__name__.startswith("Async"):
        return asyncio.run(in_loop())
    with closing(cls(servers, **keywords)) as made:
        return _config(made)


def _config(made: Any) -> ClientConfig:
    client = made if isinstance(made, Client | AsyncClient) else made.client
    config: ClientConfig = client.core.config
    return config


@each_client
@pytest.mark.parametrize(
    ("keyword", "nearest"),
    [("tls_contex", "tls"), ("conect_timeout", "connect_timeout"), ("metadata_max_age_ms", "metadata_max_age")],
)
def test_an_unknown_keyword_is_refused_with_the_nearest_name(cls: type[Any], keyword: str, nearest: str) -> None:
    with pytest.raises(OptionError, match=rf"{keyword}: there is no such setting; did you mean {nearest}\?"):
        build(cls, **{keyword: SECRET})


@pytest.mark.parametrize(
    ("cls", "keyword", "nearest"),
    [
        (Consumer, "enable_auto_commit", "auto_commit"),
        (AsyncConsumer, "max_poll_records", "max_records"),
        (Producer, "linger_ms", "linger"),
        (AsyncProducer, "compression_type", "compression"),
        (Consumer, "sasl_plain_password", "credentials"),
    ],
)
def test_names_of_other_clients_lead_to_the_keyword(cls: type[Any], keyword: str, nearest: str) -> None:
    with pytest.raises(OptionError, match=rf"did you mean {nearest}\?") as caught:
        build(cls, **{keyword: SECRET})
    assert SECRET not in shown(caught.value)


@each_client
def test_every_setting_of_the_client_is_a_keyword_of_each_client(cls: type[Any]) -> None:
    keywords = dict(
        client_id="me", timeout=1.0, request_timeout=2.0, connect_timeout=3.0, backoff=0.1, max_backoff=0.2,
        reconnect_backoff=0.3, reconnect_backoff_max=0.4, connection_max_idle=None, metadata_max_age=5.0,
        max_frame_size=1000, max_brokers=7, dns_lookup="resolve_canonical_bootstrap_servers_only",
    )  # fmt: skip
    config = build(cls, **keywords)
    assert {name: getattr(config, name) for name in keywords} == keywords


@each_client
def test_every_client_refuses_an_unknown_property_of_a_mapping(cls: type[Any]) -> None:
    with pytest.raises(OptionError, match=r"grop.id: there is no such property; did you mean group.id\?") as caught:
        build(cls, {"bootstrap.servers": "localhost:1", "grop.id": SECRET})
    assert SECRET not in shown(caught.value)


@each_client
def test_an_unknown_property_of_a_file_is_one_warning(
    cls: type[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "client.client_properties"
    path.write_text(f"bootstrap.servers=localhost:1\nmy.tool={SECRET}\nother.tool={SECRET}\nkey.deserializer=x\n")
    with caplog.at_level(logging.DEBUG, "kafka_msgs.client"):
        build(cls, path)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [text.partition(": ")[2] for text in warnings] == ["unknown properties: my.tool, other.tool"]
    assert "key.deserializer" in caplog.text
    assert SECRET not in caplog.text


def test_properties_without_effect_here_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "kafka_msgs.client"):
        resolve_names({"metric.reporters": "x", "retries": 0, "sasl.kerberos.service.name": "kafka", "error_cb": print})
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "properties: properties without effect in this client: retries"),
        (
            "DEBUG",
            "properties: properties without meaning in this client: error_cb, metric.reporters, "
            "sasl.kerberos.service.name",
        ),
    ]


def test_two_names_of_one_setting_are_refused() -> None:
    with pytest.raises(OptionError, match="the same setting as linger_ms"):
        resolve_names({"linger_ms": 5, "queue.buffering.max.ms": 6})
    with pytest.raises(OptionError, match="another property sets buffer_memory"):
        load_config({"bootstrap.servers": "b:1", "buffer.memory": 1, "queue.buffering.max.kbytes": 1}, {}, _producer())


def _producer() -> Any:
    from kafka_msgs.client.producer.config import PRODUCER

    return PRODUCER


CONFLUENT = {
    "metadata.broker.list": "b1:9092,b2:9092",
    "security.protocol": "sasl_plaintext",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": SECRET,
    "group.id": "g",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "fetch.wait.max.ms": 100,
    "statistics.interval.ms": 0,
}
KAFKA_PYTHON = {
    "bootstrap_servers": ["b1:9092", "b2:9092"],
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "alice",
    "sasl_plain_password": SECRET,
    "group_id": "g",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "fetch_max_wait_ms": 100,
    "client_id": None,
}


@pytest.mark.parametrize("properties", [CONFLUENT, KAFKA_PYTHON], ids=["confluent-kafka", "kafka-python"])
def test_dictionaries_of_other_clients_mean_the_same(properties: dict[str, Any]) -> None:
    from kafka_msgs.client.consumer.config import CONSUMER

    config, settings = load_config(properties, {}, CONSUMER)
    assert [str(each) for each in config.bootstrap_servers] == ["b1:9092", "b2:9092"]
    assert repr(config.credentials) == "PlainCredentials(username='alice', mechanism='PLAIN')"
    assert config.credentials.password == SECRET  # type: ignore[union-attr]
    assert settings == {"group_id": "g", "auto_offset_reset": "earliest", "auto_commit": False, "fetch_max_wait": 0.1}


def test_the_names_of_librdkafka_are_known() -> None:
    unknown = [name for name in _librdkafka_names() if not known(name)]
    assert unknown == []


def test_the_names_of_kafka_python_are_known() -> None:
    kafka = pytest.importorskip("kafka")
    classes = (kafka.KafkaConsumer, kafka.KafkaProducer, kafka.KafkaAdminClient)
    names = {name for cls in classes for name in cls.DEFAULT_CONFIG}
    assert sorted(name for name in names if not known(name)) == []


def test_the_names_of_aiokafka_are_known() -> None:
    aiokafka = pytest.importorskip("aiokafka")
    classes = (aiokafka.AIOKafkaConsumer, aiokafka.AIOKafkaProducer)
    names = {name for cls in classes for name in inspect.signature(cls).parameters if name not in ("topics", "loop")}
    assert sorted(name for name in names if not known(name)) == []


def test_the_names_of_kafka_are_known() -> None:
    text = (Path(__file__).parent / "kafka_setting_names.txt").read_text(encoding="utf-8")
    assert [name for name in text.split() if not known(name)] == []


def known(name: str) -> bool:
    """Return whether a property is accepted, refused with a replacement, or logged as meaningless."""
    try:
        resolve_names({name: None})
    except OptionError as error:
        return "instead" in error.reason
    return True


def _librdkafka_names() -> Iterator[str]:
    """Yield the names in librdkafka's own list, which confluent-kafka includes."""
    import ctypes

    package = Path(pytest.importorskip("confluent_kafka").__file__).parent
    libraries = sorted(package.parent.glob("confluent_kafka.libs/librdkafka*"))
    if not libraries:
        pytest.skip("confluent-kafka comes without its library")
    for other in sorted(package.parent.glob("confluent_kafka.libs/*.so*")):
        try:
            ctypes.CDLL(str(other), mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    library = ctypes.CDLL(str(libraries[0]))
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_conf_dump.restype = ctypes.POINTER(ctypes.c_char_p)
    library.rd_kafka_topic_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_topic_conf_dump.restype = ctypes.POINTER(ctypes.c_char_p)
    for kind in ("", "topic_"):
        conf = ctypes.c_void_p(getattr(library, f"rd_kafka_{kind}conf_new")())
        count = ctypes.c_size_t()
        texts = getattr(library, f"rd_kafka_{kind}conf_dump")(conf, ctypes.byref(count))
        yield from (texts[index].decode() for index in range(0, count.value, 2))


def test_the_table_has_each_name_once_and_each_keyword_exists() -> None:
    names = [name for setting in SETTINGS for name in (setting.name, *setting.aliases)]
    assert len(names) == len(set(names))
    classes = {"client": ClientConfig, "consumer": ConsumerConfig, "producer": ProducerConfig}
    for role, cls in classes.items():
        keywords = {getattr(setting, role) for setting in SETTINGS} - {None, "heartbeat_interval"}
        assert keywords <= set(fields_dict(cls))
    assert not {name for name in names if name in UNSUPPORTED}


@pytest.mark.parametrize("address", ["PLAINTEXT://b:9092", "sasl_ssl://b:9092", "b", "b:x", "::1:9092", "a b:1", ":1"])
def test_an_address_is_parsed_or_refused(address: str) -> None:
    with pytest.raises(OptionError, match="expected HOST:PORT"):
        ClientConfig(bootstrap_servers=address)


def test_an_address_of_ip_version_6_needs_brackets() -> None:
    assert ClientConfig(bootstrap_servers="[::1]:9092").bootstrap_servers == (("::1", 9092),)


def shown(error: KafkaMsgsError) -> str:
    """Return all text of an error that a log, a debugger or a crash report may display."""
    return f"{error} {error!r} {vars(error)} {error.args} {error.__cause__!r} {error.__context__!r}"


URL = f"https://client:{SECRET}@idp/token?secret={SECRET}"
SECRETS = [SECRET, URL, f"x{SECRET};", f"-----BEGIN {SECRET}"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [(setting, value) for setting in SETTINGS for value in SECRETS if setting.is_secret or value == URL],
)
def test_no_error_of_a_setting_shows_a_secret(setting: Setting, value: str) -> None:
    """Settings that may hold a secret never display their value; all other settings hide the secrets of URLs."""
    from kafka_msgs.client.consumer.config import CONSUMER

    base = {
        "bootstrap.servers": "b:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"
    }  # fmt: skip
    for mechanism in ("OAUTHBEARER", "PLAIN", "SCRAM-SHA-512"):
        for role in (CONSUMER, _producer()):
            properties = {**base, "sasl.mechanism": mechanism, setting.name: value}
            shown_values = _outcome(properties, role)
            assert SECRET not in shown_values or (not setting.is_secret and "Error" not in shown_values)


def _outcome(properties: dict[str, str], role: Any) -> str:
    try:
        config, _ = load_config(properties, {}, role)
    except KafkaMsgsError as error:
        return f"Error: {shown(error)}"
    return f"{config!r} {config.credentials!r}"


def test_a_properties_file_is_parsed_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "client.client_properties"
    path.write_text("bootstrap.servers=b:1\nclient.id=a" + "\\\n  b" * 200_000 + "\n" + "x" * 10, encoding="utf-8")
    begin = time.process_time()
    config, _ = load_config(path, {})
    assert time.process_time() - begin < 3
    assert config.client_id == "a" + "b" * 200_000


def test_ignored_names_do_not_hide_settings() -> None:
    assert [name for name in IGNORED | UNSUPPORTED if find_setting(name)] == []
    assert is_ignored("sasl.kerberos.service.name")
