"""The table of all settings: Kafka's name, the keyword, the unit, and the names in other clients.

Kafka's names come from ``CommonClientConfigs``, ``ConsumerConfig``, ``ProducerConfig``, ``SslConfigs`` and
``SaslConfigs``, the aliases from librdkafka (confluent-kafka) and aiokafka. kafka-python and aiokafka spell most names
with underscores; the table accepts this for every name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from attrs import frozen

__all__ = [
    "IGNORED",
    "REPLACED",
    "SETTINGS",
    "UNSUPPORTED",
    "Role",
    "Setting",
    "Unit",
    "find_setting",
    "is_ignored",
    "known_names",
]

Role: TypeAlias = Literal["client", "consumer", "producer"]
"""The config class that a keyword belongs to: ``ClientConfig``, ``ConsumerConfig`` or ``ProducerConfig``."""


class Unit(NamedTuple):
    """The unit of a property, and the function that parses its text."""

    name: str
    parse: Callable[[str], Any]


def _parse_bool(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _parse_acks(text: str) -> int:
    return -1 if text.lower() == "all" else int(text)


def _parse_idle_time(text: str) -> float | None:
    """Return seconds, or None for no limit, which is negative in Kafka and 0 in librdkafka."""
    return int(text) / 1000 if int(text) > 0 else None


def _parse_assignors(text: str) -> tuple[str, ...]:
    """Return assignor names. The text may list names or Kafka's classes."""
    return tuple(_ASSIGNORS.get(each.strip().rpartition(".")[2], each.strip()) for each in text.split(","))


_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}

_TEXT: Final = Unit("text", str)
_WORD: Final = Unit("text", str.lower)
_MS: Final = Unit("ms", lambda text: int(text) / 1000)
_IDLE: Final = Unit("ms", _parse_idle_time)
_BYTES: Final = Unit("bytes", int)
_KB: Final = Unit("KB", lambda text: int(text) << 10)
_COUNT: Final = Unit("number", int)
_BOOL: Final = Unit("boolean", _parse_bool)
_ACKS: Final = Unit("0, 1, all", _parse_acks)
_NAMES: Final = Unit("names", _parse_assignors)
_SECURITY: Final = Unit("security", str)
"""Properties that together form ``tls`` or ``credentials``, see ``client_properties``."""


@frozen
class Setting:
    """A property, and its keyword in each config class. A property without a keyword is part of a larger setting."""

    name: str
    unit: Unit
    client: str | None = None
    consumer: str | None = None
    producer: str | None = None
    aliases: tuple[str, ...] = ()
    is_secret: bool = False
    """Whether the value may contain a secret, which errors must not show."""

    def keyword(self, role: Role) -> str | None:
        """Return the keyword of a config class, or None if the property does not set one."""
        keyword: str | None = getattr(self, role)
        return keyword


def _part(name: str, keyword: str, *aliases: str, is_secret: bool = False) -> Setting:
    """Return a property that is part of ``tls`` or ``credentials``."""
    return Setting(name, _SECURITY, keyword, aliases=aliases, is_secret=is_secret)


SETTINGS: Final = (
    Setting("bootstrap.servers", _TEXT, "bootstrap_servers", aliases=("metadata.broker.list",)),
    Setting("client.id", _TEXT, "client_id"),
    Setting("default.api.timeout.ms", _MS, "timeout"),
    Setting("request.timeout.ms", _MS, "request_timeout", producer="request_timeout", aliases=("socket.timeout.ms",)),
    Setting("socket.connection.setup.timeout.ms", _MS, "connect_timeout"),
    Setting("retry.backoff.ms", _MS, "backoff", producer="retry_backoff"),
    Setting("retry.backoff.max.ms", _MS, "max_backoff", producer="retry_backoff_max"),
    Setting("reconnect.backoff.ms", _MS, "reconnect_backoff"),
    Setting("reconnect.backoff.max.ms", _MS, "reconnect_backoff_max"),
    Setting("connections.max.idle.ms", _IDLE, "connection_max_idle"),
    Setting("client.dns.lookup", _WORD, "dns_lookup"),
    Setting("metadata.max.age.ms", _MS, "metadata_max_age", aliases=("topic.metadata.refresh.interval.ms",)),
    Setting("receive.message.max.bytes", _BYTES, "max_frame_size"),
    Setting("socks5.proxy", _TEXT, "proxy", aliases=("proxy.url",), is_secret=True),
    _part("security.protocol", "tls"),
    _part("ssl.truststore.location", "tls"),
    _part("ssl.truststore.certificates", "tls", "ssl.ca.pem"),
    _part("ssl.truststore.type", "tls"),
    _part("ssl.ca.location", "tls", "ssl.cafile"),
    _part("ssl.keystore.location", "tls"),
    _part("ssl.keystore.certificate.chain", "tls", "ssl.certificate.pem"),
    _part("ssl.keystore.type", "tls"),
    _part("ssl.certificate.location", "tls", "ssl.certfile"),
    _part("ssl.keystore.key", "tls", "ssl.key.pem", is_secret=True),
    _part("ssl.key.location", "tls", "ssl.keyfile"),
    _part("ssl.key.password", "tls", "ssl.password", is_secret=True),
    _part("ssl.endpoint.identification.algorithm", "tls"),
    _part("ssl.check.hostname", "tls"),
    _part("enable.ssl.certificate.verification", "tls"),
    _part("sasl.mechanism", "credentials", "sasl.mechanisms"),
    _part("sasl.jaas.config", "credentials", is_secret=True),
    _part("sasl.username", "credentials", "sasl.plain.username"),
    _part("sasl.password", "credentials", "sasl.plain.password", is_secret=True),
    _part("sasl.oauthbearer.method", "credentials"),
    _part("sasl.oauthbearer.token.endpoint.url", "credentials", is_secret=True),
    _part("sasl.oauthbearer.client.credentials.client.id", "credentials", "sasl.oauthbearer.client.id"),
    _part(
        "sasl.oauthbearer.client.credentials.client.secret",
        "credentials",
        "sasl.oauthbearer.client.secret",
        is_secret=True,
    ),
    _part("sasl.oauthbearer.scope", "credentials"),
    _part("sasl.oauthbearer.extensions", "credentials", is_secret=True),
    Setting("group.id", _TEXT, consumer="group_id"),
    Setting("group.instance.id", _TEXT, consumer="group_instance_id"),
    Setting("group.protocol", _WORD, consumer="group_protocol"),
    Setting("group.remote.assignor", _TEXT, consumer="remote_assignor"),
    Setting("partition.assignment.strategy", _NAMES, consumer="assignors"),
    Setting("session.timeout.ms", _MS, consumer="session_timeout"),
    Setting("heartbeat.frequency", _COUNT, consumer="heartbeat_frequency"),
    Setting("heartbeat.interval.ms", _MS, consumer="heartbeat_interval"),
    Setting("max.poll.interval.ms", _MS, consumer="max_poll_interval"),
    Setting("rebalance.timeout.ms", _MS, consumer="rebalance_timeout"),
    Setting("client.rack", _TEXT, consumer="client_rack"),
    Setting("offsets.storage", _TEXT, consumer="offsets_storage"),
    Setting("enable.auto.commit", _BOOL, consumer="auto_commit"),
    Setting("enable.auto.offset.store", _BOOL, consumer="auto_offset_store"),
    Setting("auto.commit.interval.ms", _MS, consumer="auto_commit_interval"),
    Setting("auto.offset.reset", _WORD, consumer="auto_offset_reset"),
    Setting("isolation.level", _WORD, consumer="isolation_level"),
    Setting("fetch.min.bytes", _BYTES, consumer="fetch_min_bytes"),
    Setting("fetch.max.wait.ms", _MS, consumer="fetch_max_wait", aliases=("fetch.wait.max.ms",)),
    Setting("fetch.max.bytes", _BYTES, consumer="fetch_max_bytes"),
    Setting("max.partition.fetch.bytes", _BYTES, consumer="partition_max_bytes", aliases=("fetch.message.max.bytes",)),
    Setting("queued.max.messages.kbytes", _KB, consumer="buffer_max_bytes"),
    Setting("max.poll.records", _COUNT, consumer="max_records"),
    Setting("check.crcs", _BOOL, consumer="check_crc"),
    Setting("acks", _ACKS, producer="acks", aliases=("request.required.acks",)),
    Setting("compression.type", _WORD, producer="compression", aliases=("compression.codec",)),
    Setting("compression.level", _COUNT, producer="compression_level"),
    Setting("compression.gzip.level", _COUNT, producer="compression_level"),
    Setting("compression.lz4.level", _COUNT, producer="compression_level"),
    Setting("compression.zstd.level", _COUNT, producer="compression_level"),
    Setting("batch.size", _BYTES, producer="batch_size", aliases=("max.batch.size",)),
    Setting("linger.ms", _MS, producer="linger", aliases=("queue.buffering.max.ms",)),
    Setting("buffer.memory", _BYTES, producer="buffer_memory"),
    Setting("queue.buffering.max.kbytes", _KB, producer="buffer_memory"),
    Setting("max.request.size", _BYTES, producer="max_request_size", aliases=("message.max.bytes",)),
    Setting("max.in.flight.requests.per.connection", _COUNT, producer="max_in_flight", aliases=("max.in.flight",)),
    Setting("enable.idempotence", _BOOL, producer="idempotence"),
    Setting("transactional.id", _TEXT, producer="transactional_id"),
    Setting("transaction.timeout.ms", _MS, producer="transaction_timeout"),
    Setting("delivery.timeout.ms", _MS, producer="delivery_timeout", aliases=("message.timeout.ms",)),
    Setting("max.block.ms", _MS, producer="max_block"),
)
"""All supported properties."""

REPLACED: Final[Mapping[str, str]] = {
    "oauth_cb": "credentials",
    "sasl.oauth.token.provider": "credentials",
    "ssl.context": "tls",
    "tls.context": "tls",
    "ssl.truststore.password": "ssl.truststore.type=PEM",
    "ssl.keystore.password": "ssl.keystore.type=PEM",
}
"""Rejected properties of other clients, with their replacements."""

_UNSUPPORTED: Final = """
consume.callback.max.messages consume_cb dr_cb dr_msg_cb interceptor.classes message.send.max.retries message_cb
msg_order_cmp offset_commit_cb partitioner partitioner.class partitioner.ignore.keys plugin.library.paths
rebalance_cb retries sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class
ssl.ca.certificate.stores ssl.cipher.suites ssl.ciphers ssl.crl.location ssl.crlfile ssl.curves.list
ssl.enabled.protocols ssl.engine.factory.class ssl.engine.id ssl.engine.location ssl.protocol ssl.providers
ssl.sigalgs.list topic.blacklist transaction.two.phase.commit.enable
"""
UNSUPPORTED: Final = frozenset(_UNSUPPORTED.split())
"""Properties that affect other clients but have no effect here: a warning lists them."""

_IGNORED: Final = """
allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms api_version
api_version_auto_timeout_ms auto.commit.enable auto.include.jmx.reporter background_event_cb batch.num.messages
bootstrap.controllers bootstrap_timeout_ms broker.address.family broker.address.ttl broker.version.fallback
builtin.features client.software.name client.software.version closesocket_cb config.providers connect_cb
consumer_timeout_ms coordinator.query.interval.ms debug default_offset_commit_callback default_topic_conf
delivery.report.only.error enable.gapless.guarantee enable.metrics.push
enable.partition.eof enable.random.seed enable.sasl.oauthbearer.unsecure.jwt enable.sparse.connections
enable_incremental_fetch_sessions enable_sasl_queue enabled_events error_cb exclude.internal.topics
fetch.error.backoff.ms fetch.queue.backoff.ms group.protocol.type internal.termination.signal
internal.throw.on.fetch.stable.offset.unsupported kafka_client key.deserializer key.serializer log.connection.close
log.queue log.thread.name log_cb log_level logger loop message.copy.max.bytes metadata.max.idle.ms
metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metadata.request.timeout.ms metric.reporters
metric_group_prefix metrics.num.samples metrics.recording.level metrics.sample.window.ms metrics_enabled
offset.store.method offset.store.path offset.store.sync.interval.ms on_delivery opaque open_cb
partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms produce.offset.report
queue.buffering.backpressure.threshold queue.buffering.max.messages queued.min.messages queuing.strategy
receive.buffer.bytes reconnect.backoff.jitter.ms resolve_cb security.providers selector send.buffer.bytes
share.acknowledgement.mode share.acquire.mode sock_chunk_buffer_count sock_chunk_bytes socket.blocking.max.ms
socket.connection.setup.timeout.max.ms socket.keepalive.enable socket.max.fails socket.nagle.disable
socket.receive.buffer.bytes socket.send.buffer.bytes socket_cb socket_options ssl.keymanager.algorithm ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm ssl_ciphers state_change_callback statistics.interval.ms
stats_cb sticky.partitioning.linger.ms test.mock.broker.rtt test.mock.num.brokers throttle_cb
topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
topic.metadata.refresh.sparse value.deserializer value.serializer wakeup_timeout_ms
"""
IGNORED: Final = frozenset(_IGNORED.split())
"""Known properties of Kafka, librdkafka, kafka-python and aiokafka that do not apply here. They are logged at DEBUG."""

_IGNORED_PREFIXES: Final = ("sasl.kerberos.", "sasl.login.", "sasl.oauthbearer.", "metrics.", "https.ca.")


def is_ignored(name: str) -> bool:
    """Return whether a known property does not apply here."""
    dotted = name.replace("_", ".")
    return bool({name, dotted} & IGNORED) or dotted.startswith(_IGNORED_PREFIXES)


def find_setting(name: str) -> Setting | None:
    """Return the setting with this name or alias, with dots or underscores, or None."""
    return _BY_NAME.get(name) or _BY_NAME.get(name.replace("_", "."))


def known_names(role: Role) -> Iterator[tuple[str, str]]:
    """Yield each known name, with underscores, and its keyword in the role or in the client."""
    for name, setting in _BY_NAME.items():
        keyword = setting.keyword(role) or setting.client
        if keyword is not None:
            yield name.replace(".", "_"), keyword
    for name, replacement in REPLACED.items():
        if replacement.isidentifier():
            yield name.replace(".", "_"), replacement


_BY_NAME: Final[Mapping[str, Setting]] = {
    name: setting for setting in SETTINGS for name in (setting.name, *setting.aliases)
}
