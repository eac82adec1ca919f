"""The configuration of a group coordinator, and of single groups, with Kafka's names, defaults and bounds.

The name of a config is its attribute name with dots: ``group_max_size`` is ``group.max.size``. ``parse`` reads strings
from a properties file or IncrementalAlterConfigs. Group configs override coordinator configs:
``streams.session.timeout.ms`` of a group overrides ``group.streams.session.timeout.ms``. Sources:
``GroupCoordinatorConfig``, ``GroupConfig`` and ``ShareGroupConfig`` of Kafka 4.4.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn, Self, TypeAlias, TypeVar

from attrs import Attribute, field, fields_dict, frozen

from kafka_msgs.errors import OptionError

__all__ = ["CoordinatorConfig", "ForcedTarget", "GroupConfig"]

T = TypeVar("T")

ForcedTarget: TypeAlias = Mapping[str, Mapping[str, Sequence[int]]]
"""A target assignment that a test chooses: the partitions of each member by topic name.

A member is named by its member id, instance id or client id.
"""

_MAX_INT: Final = 2**31 - 1
_DURATION: Final = re.compile(
    r"by_duration:P(?=.)((?P<days>\d+)D)?"
    r"(T(?=.)((?P<hours>\d+)H)?((?P<minutes>\d+)M)?((?P<seconds>\d+(\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_MS: Final[Mapping[str, int]] = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}
_KINDS: Final = ("consumer", "share", "streams")
_PROTOCOLS: Final = frozenset(("classic", *_KINDS))


def _setting(default: T, low: int | None = None, high: int = _MAX_INT, check: Callable[[Any], bool] | None = None) -> T:
    """A config with its inclusive bounds, or with a check of its value."""
    made: T = field(default=default, metadata={"low": low, "high": high, "check": check})
    return made


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value.lower() in values


def _distinct(values: tuple[str, ...]) -> bool:
    return len(set(values)) == len(values)


@frozen(kw_only=True)
class _Settings:
    """Configs under Kafka's names."""

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> Self:
        """Return the configs parsed from strings by Kafka's names. Missing configs have Kafka's defaults.

        Raises ``OptionError`` for an unknown name and for an invalid value.
        """
        return cls(**_parsed(cls, texts))

    def __attrs_post_init__(self) -> None:
        for attribute in fields_dict(type(self)).values():
            _check(type(self), attribute, getattr(self, attribute.name))

    def text(self, name: str) -> str:
        """Return the value of a config, by Kafka's name, in Kafka's text form. Raises ``OptionError``."""
        value = getattr(self, _attribute(type(self), name).name)
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


@frozen(kw_only=True)
class CoordinatorConfig(_Settings):
    """The static configuration of a group coordinator. Times are in milliseconds unless the name ends in minutes.

    Raises ``OptionError`` for a value out of its bounds, and for values that contradict each other.
    """

    offsets_topic_num_partitions: int = _setting(50, 1)
    offsets_commit_timeout_ms: int = _setting(5000, 1)
    offsets_retention_minutes: int = _setting(7 * 24 * 60, 1)
    offsets_retention_check_interval_ms: int = _setting(600_000, 1, 2**63 - 1)
    offset_metadata_max_bytes: int = _setting(4096)

    group_coordinator_rebalance_protocols: tuple[str, ...] = _setting(
        ("classic", "consumer", "streams"), check=lambda names: "classic" in names and set(names) <= _PROTOCOLS
    )

    group_min_session_timeout_ms: int = _setting(6000)
    group_max_session_timeout_ms: int = _setting(1_800_000)
    group_initial_rebalance_delay_ms: int = _setting(3000)
    group_max_size: int = _setting(_MAX_INT, 1)

    group_consumer_session_timeout_ms: int = _setting(45_000, 1)
    group_consumer_min_session_timeout_ms: int = _setting(45_000, 1)
    group_consumer_max_session_timeout_ms: int = _setting(60_000, 1)
    group_consumer_heartbeat_interval_ms: int = _setting(5000, 1)
    group_consumer_min_heartbeat_interval_ms: int = _setting(5000, 1)
    group_consumer_max_heartbeat_interval_ms: int = _setting(15_000, 1)
    group_consumer_assignment_interval_ms: int = _setting(1000, 0)
    group_consumer_min_assignment_interval_ms: int = _setting(0, 0)
    group_consumer_max_assignment_interval_ms: int = _setting(15_000, 0)
    group_consumer_assignor_offload_enable: bool = _setting(True)
    group_consumer_assignors: tuple[str, ...] = _setting(("uniform", "range"), check=_distinct)
    group_consumer_max_size: int = _setting(_MAX_INT, 1)
    group_consumer_migration_policy: str = _setting(
        "bidirectional", check=_one_of("disabled", "downgrade", "upgrade", "bidirectional")
    )
    group_consumer_regex_refresh_interval_ms: int = _setting(600_000, 10_000)

    group_share_session_timeout_ms: int = _setting(45_000, 1)
    group_share_min_session_timeout_ms: int = _setting(45_000, 1)
    group_share_max_session_timeout_ms: int = _setting(60_000, 1)
    group_share_heartbeat_interval_ms: int = _setting(5000, 1)
    group_share_min_heartbeat_interval_ms: int = _setting(5000, 1)
    group_share_max_heartbeat_interval_ms: int = _setting(15_000, 1)
    group_share_assignment_interval_ms: int = _setting(1000, 0)
    group_share_min_assignment_interval_ms: int = _setting(0, 0)
    group_share_max_assignment_interval_ms: int = _setting(15_000, 0)
    group_share_assignor_offload_enable: bool = _setting(True)
    group_share_assignors: tuple[str, ...] = _setting(("simple",), check=lambda names: len(names) == 1)
    group_share_max_size: int = _setting(200, 1, 1000)
    group_share_initialize_retry_interval_ms: int = _setting(30_000, 1)
    group_share_record_lock_duration_ms: int = _setting(30_000, 1000, 3_600_000)
    group_share_min_record_lock_duration_ms: int = _setting(15_000, 1000, 30_000)
    group_share_max_record_lock_duration_ms: int = _setting(60_000, 30_000, 3_600_000)
    group_share_delivery_count_limit: int = _setting(5, 2, 10)
    group_share_min_delivery_count_limit: int = _setting(2, 2, 5)
    group_share_max_delivery_count_limit: int = _setting(10, 5, 25)
    group_share_partition_max_record_locks: int = _setting(2000, 100, 10_000)
    group_share_min_partition_max_record_locks: int = _setting(100, 100, 2000)
    group_share_max_partition_max_record_locks: int = _setting(4000, 2000, 10_000)

    group_streams_session_timeout_ms: int = _setting(45_000, 1)
    group_streams_min_session_timeout_ms: int = _setting(45_000, 1)
    group_streams_max_session_timeout_ms: int = _setting(60_000, 1)
    group_streams_heartbeat_interval_ms: int = _setting(5000, 1)
    group_streams_min_heartbeat_interval_ms: int = _setting(5000, 1)
    group_streams_max_heartbeat_interval_ms: int = _setting(15_000, 1)
    group_streams_assignment_interval_ms: int = _setting(1000, 0)
    group_streams_min_assignment_interval_ms: int = _setting(0, 0)
    group_streams_max_assignment_interval_ms: int = _setting(15_000, 0)
    group_streams_assignor_offload_enable: bool = _setting(True)
    group_streams_assignors: tuple[str, ...] = _setting(("sticky",), check=_distinct)
    group_streams_max_size: int = _setting(_MAX_INT, 1)
    group_streams_initial_rebalance_delay_ms: int = _setting(3000, 0)
    group_streams_num_standby_replicas: int = _setting(0, 0)
    group_streams_max_standby_replicas: int = _setting(2, 0)
    group_streams_num_warmup_replicas: int = _setting(2, 0)
    group_streams_max_warmup_replicas: int = _setting(20, 0)
    group_streams_task_offset_interval_ms: int = _setting(60_000, 1)
    group_streams_min_task_offset_interval_ms: int = _setting(15_000, 1)
    group_streams_acceptable_recovery_lag: int = _setting(10_000, 0, 2**63 - 1)
    group_streams_rack_aware_assignment_tags: tuple[str, ...] = _setting((), check=_distinct)

    @property
    def offsets_retention_ms(self) -> int:
        """How long offsets are retained after their group becomes empty."""
        return self.offsets_retention_minutes * 60_000

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        for kind in _KINDS:
            for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
                low, value, high = f"group.{kind}.min.{name}", f"group.{kind}.{name}", f"group.{kind}.max.{name}"
                _require_order(self, low, value)
                _require_order(self, value, high)
            session, heartbeat = f"group.{kind}.session.timeout.ms", f"group.{kind}.heartbeat.interval.ms"
            if _value(self, session) <= _value(self, heartbeat):
                _refuse(type(self), session, _value(self, session), f"must be greater than {heartbeat}")

    def for_group(self, own: Mapping[str, str]) -> GroupConfig:
        """Return the config of a group with its ``own`` configs, by Kafka's names.

        A group config outside the bounds of the coordinator is clamped to the nearest bound, as in Kafka 4.4.0. Raises
        ``OptionError`` for an unknown name and for a value that cannot be parsed.
        """
        values = _parsed(GroupConfig, own)
        values.update((name, self._bounded(name, value)) for name, value in values.items())
        defaults = {name: getattr(self, broker) for name, broker in _SYNONYMS.items()}
        return GroupConfig(**{**defaults, **values})

    def validate_group(self, own: Mapping[str, str]) -> GroupConfig:
        """Check a change of group configs, as AlterConfigs does, and return the config.

        Raises ``OptionError`` for an unknown name, for an invalid value, for a value outside the bounds of the
        coordinator, and if the session timeout is not greater than the heartbeat interval.
        """
        values = _parsed(GroupConfig, own)
        for name, value in values.items():
            if value != self._bounded(name, value):
                _refuse(GroupConfig, _dotted(name), value, self._range(name))
        assignor = values.get("streams_assignor_name")
        if assignor is not None and assignor not in self.group_streams_assignors:
            _refuse(GroupConfig, "streams.assignor.name", assignor, "not one of group.streams.assignors")
        config = self.for_group(own)
        for kind in _KINDS:
            session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
            if (session in own or heartbeat in own) and _value(config, session) <= _value(config, heartbeat):
                _refuse(GroupConfig, session, _value(config, session), f"must be greater than {heartbeat}")
        return config

    def _range(self, name: str) -> str:
        """The allowed values of a group config, as Kafka's text."""
        low, high = (bound and getattr(self, bound) for bound in _GROUP_BOUNDS[name])
        if low is None:
            return f"must be less than or equal to {high}"
        if high is None:
            return f"must be greater than or equal to {low}"
        return f"must be in the range {low} to {high} inclusive."

    def _bounded(self, name: str, value: Any) -> Any:
        """The value of a group config, clamped to the bounds of the coordinator."""
        low, high = (bound and getattr(self, bound) for bound in _GROUP_BOUNDS.get(name, (None, None)))
        if low is not None and value < low:
            return low
        return high if high is not None and value > high else value


@frozen(kw_only=True)
class GroupConfig(_Settings):
    """The config of one group. Times are in milliseconds.

    ``CoordinatorConfig.for_group`` creates it. Configs that the group does not set have the values of the coordinator.
    """

    consumer_session_timeout_ms: int = _setting(45_000, 1)
    consumer_heartbeat_interval_ms: int = _setting(5000, 1)
    consumer_assignment_interval_ms: int = _setting(1000, 0)
    consumer_assignor_offload_enable: bool = _setting(True)

    share_session_timeout_ms: int = _setting(45_000, 1)
    share_heartbeat_interval_ms: int = _setting(5000, 1)
    share_assignment_interval_ms: int = _setting(1000, 0)
    share_assignor_offload_enable: bool = _setting(True)
    share_record_lock_duration_ms: int = _setting(30_000, 1000)
    share_delivery_count_limit: int = _setting(5, 2)
    share_partition_max_record_locks: int = _setting(2000, 100)
    share_auto_offset_reset: str = _setting(
        "latest", check=lambda value: value.lower() in ("latest", "earliest") or bool(_DURATION.fullmatch(value))
    )
    share_isolation_level: str = _setting("read_uncommitted", check=_one_of("read_committed", "read_uncommitted"))
    share_renew_acknowledge_enable: bool = _setting(True)
    errors_deadletterqueue_topic_name: str = _setting("", check=lambda name: not name.startswith("__"))
    errors_deadletterqueue_copy_record_enable: bool = _setting(False)

    streams_session_timeout_ms: int = _setting(45_000, 1)
    streams_heartbeat_interval_ms: int = _setting(5000, 1)
    streams_assignment_interval_ms: int = _setting(1000, 0)
    streams_assignor_offload_enable: bool = _setting(True)
    streams_assignor_name: str | None = _setting(None)
    streams_initial_rebalance_delay_ms: int = _setting(3000, 0)
    streams_num_standby_replicas: int = _setting(0, 0)
    streams_num_warmup_replicas: int = _setting(2, 0)
    streams_task_offset_interval_ms: int = _setting(60_000, 1)
    streams_acceptable_recovery_lag: int = _setting(10_000, 0, 2**63 - 1)
    streams_rack_aware_assignment_tags: tuple[str, ...] = _setting((), check=_distinct)

    @property
    def share_reset_duration_ms(self) -> int | None:
        """How far back a share group starts to read, in ms. None unless its reset strategy is a duration."""
        match = _DURATION.fullmatch(self.share_auto_offset_reset)
        return match and int(sum(float(match[unit] or 0) * ms for unit, ms in _MS.items()))


_SYNONYMS: Final[Mapping[str, str]] = {
    name: f"group_{name}" for name in fields_dict(GroupConfig) if f"group_{name}" in fields_dict(CoordinatorConfig)
}
"""The coordinator config that a group config overrides."""


def _bounds() -> Iterator[tuple[str, tuple[str | None, str | None]]]:
    known = fields_dict(CoordinatorConfig)
    for name in _SYNONYMS:
        kind, _, rest = name.partition("_")
        low = f"group_{kind}_min_{rest}"
        high = f"group_{kind}_max_{rest.removeprefix('num_')}"
        if low in known or high in known:
            yield name, (low if low in known else None, high if high in known else None)


_GROUP_BOUNDS: Final[Mapping[str, tuple[str | None, str | None]]] = dict(_bounds())
"""The coordinator configs that bound a group config."""


def _parsed(cls: type[_Settings], texts: Mapping[str, str]) -> dict[str, Any]:
    values = {}
    for name, text in texts.items():
        attribute = _attribute(cls, name)
        values[attribute.name] = _read(cls, name, str(attribute.type), text)
        _check(cls, attribute, values[attribute.name])
    return values


def _attribute(cls: type[_Settings], name: str) -> Attribute[Any]:
    attribute: Attribute[Any] | None = fields_dict(cls).get(name.replace(".", "_"))
    if attribute is None or _dotted(attribute.name) != name:
        _refuse(cls, name, None, "there is no such setting")
    return attribute


def _read(cls: type[_Settings], name: str, kind: str, text: str) -> object:
    text = text.strip()
    if kind.startswith("tuple"):
        return tuple(part.strip() for part in text.split(",")) if text else ()
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            _refuse(cls, name, text, "expected true or false")
        return text.lower() == "true"
    if kind == "int":
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
            _refuse(cls, name, text, "expected a whole number")
        return int(text)
    return text


def _check(cls: type[_Settings], attribute: Attribute[Any], value: Any) -> None:
    low, high, check = (attribute.metadata[key] for key in ("low", "high", "check"))
    if isinstance(value, int) and not isinstance(value, bool) and (value > high or (low is not None and value < low)):
        _refuse(cls, _dotted(attribute.name), value, f"expected {'at most' if low is None else f'{low} to'} {high}")
    if check is not None and not check(value):
        _refuse(cls, _dotted(attribute.name), value, "not a value of this setting")


def _require_order(config: CoordinatorConfig, smaller: str, greater: str) -> None:
    if _value(config, smaller) > _value(config, greater):
        _refuse(type(config), greater, _value(config, greater), f"must be greater than or equal to {smaller}")


def _value(config: _Settings, name: str) -> int:
    value: int = getattr(config, name.replace(".", "_"))
    return value


def _dotted(name: str) -> str:
    return name.replace("_", ".")


def _refuse(cls: type[_Settings], name: str, value: object, reason: str) -> NoReturn:
    raise OptionError(source=cls.__name__, option=name, value=value, reason=reason)
