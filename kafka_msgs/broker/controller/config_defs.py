"""Kafka's config definitions for brokers, topics, groups and client metrics: types, defaults and allowed values.

The table is ``settings.tsv``. ``ConfigKey.check`` validates a text like Kafka's ``ConfigDef``. ``BrokerConfigs``
provides the configs of an embedded cluster as numbers and flags.

The last column of the table is the effect of a config in the embedded cluster: ``yes``, ``start`` (read when a broker
starts), ``telemetry`` (only with ``BrokerConfig.telemetry``), ``none``, or the attribute that replaces it, for example
``BrokerConfig.racks``. No config is ignored silently: a config without effect is logged, and a replaced one is refused.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from math import isfinite, isnan
from typing import Any, Final

from attrs import frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import InternalError, OptionError, RequestRefusedError
from kafka_msgs.suggestions import no_such

__all__ = ["BROKER", "CLIENT_METRICS", "GROUP", "TOPIC", "BrokerConfigs", "ConfigKey", "config_keys", "log_effect"]

_LOG: Final = logging.getLogger("kafka_msgs.broker")

TOPIC: Final = "topic"
BROKER: Final = "broker"
GROUP: Final = "group"
CLIENT_METRICS: Final = "client-metrics"

_BITS: Final = {"short": 16, "int": 32, "long": 64}
_RANGE: Final = re.compile(r"\[(?P<low>-?[\d.]+),\.\.\.(,(?P<high>-?[\d.]+))?\]( or (?P<also>-1))?")
_PAIRS_ALLOWED: Final = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
_PAIR: Final = re.compile(r"(\d+:\d+)?")
_CHOICES: Final = re.compile(r"(?P<any_case>\(case insensitive\) )?\[(?P<names>[\w, -]+)\]")
_BLANKS: Final = "".join(map(chr, range(33)))
"""The characters that Java's ``String.trim`` removes."""
_BLANKS_IN_LISTS: Final = " \t\n\v\f\r"
_WHOLE: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?(NaN|Infinity|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)


@frozen
class ConfigKey:
    """A config definition.

    ``type`` is Kafka's type in lowercase; ``default`` is a text or None; ``allowed`` is Kafka's description of the
    allowed values, for example ``[0,...]``. ``internal`` configs are hidden, and configs that are not ``dynamic`` can
    only be set when a broker starts. ``effect`` is described above. ``synonyms`` of a topic config are its broker
    configs in order of precedence, each with the factor that converts its unit.
    """

    name: str
    type: str
    default: str | None
    allowed: str
    internal: bool
    dynamic: bool = True
    effect: str = "yes"
    synonyms: tuple[tuple[str, int], ...] = ()

    @property
    def replaced(self) -> bool:
        """Whether an attribute replaces the config."""
        return "." in self.effect

    def check(self, text: str) -> Any:
        """Return the parsed value of a text. Raises ``RequestRefusedError`` with INVALID_CONFIG."""
        value = self._parsed(text)
        for check in (_check_range, _check_items, _check_choice, _check_throttled):
            check(self, value)
        return value

    def normalize(self, text: str) -> str:
        """Return a value in Kafka's text format: ``7`` for ``" +7 "``. Raises ``RequestRefusedError``."""
        return _text_of(self._parsed(text))

    def refuse(self, value: Any, reason: str) -> RequestRefusedError:
        """Return the error for an invalid value, with Kafka's error message."""
        return RequestRefusedError(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {_text_of(value)} for configuration {self.name}: {reason}",
        )

    def _parsed(self, text: str) -> Any:
        trimmed = text.strip(_BLANKS)
        if self.type == "boolean":
            if trimmed.lower() not in ("true", "false"):
                raise self.refuse(text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        if self.type in _BITS or self.type == "double":
            return self._number(text, trimmed)
        if self.type == "list":
            items = [each.strip(_BLANKS_IN_LISTS) for each in trimmed.split(",")] if trimmed else []
            return tuple(items if self._repeats else dict.fromkeys(items))
        return trimmed

    @property
    def _repeats(self) -> bool:
        """Whether a list keeps duplicate and empty values."""
        return self.allowed == _PAIRS_ALLOWED

    def _number(self, text: str, trimmed: str) -> int | float:
        bits = _BITS.get(self.type)
        try:
            if bits is None and _DECIMAL.fullmatch(trimmed):
                return float(trimmed.rstrip("fFdD"))
            if bits is not None and _WHOLE.fullmatch(trimmed) and -(1 << bits - 1) <= int(trimmed) < 1 << bits - 1:
                return int(trimmed)
        except ValueError:
            pass  # More digits than Python's ``int`` parses.
        raise self.refuse(text, f"Not a number of type {self.type.upper()}")


def _text_of(value: Any) -> str:
    """Return a config value in Java's text format."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    return _text_of_double(value) if isinstance(value, float) else str(value)


def _text_of_double(value: float) -> str:
    if not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or 0}E{int(exponent) + len(rest)}"


def _check_range(setting: ConfigKey, value: Any) -> None:
    match = _RANGE.fullmatch(setting.allowed)
    if match is None or str(value) == match["also"]:
        return
    low, high, also = match["low"], match["high"], match["also"]
    if also is not None and not float(low) <= value <= float(high or value):
        raise setting.refuse(value, f"Value must be between {low} and {high} or equal to {also}")
    if value < float(match["low"]):
        raise setting.refuse(value, f"Value must be at least {match['low']}")
    if match["high"] is not None and value > float(match["high"]):
        raise setting.refuse(value, f"Value must be no more than {match['high']}")


def _check_items(setting: ConfigKey, value: Any) -> None:
    if isinstance(value, tuple) and "" in value and not setting._repeats:
        raise RequestRefusedError(ErrorCode.INVALID_CONFIG, f"Configuration '{setting.name}' values must not be empty.")


def _check_choice(setting: ConfigKey, value: Any) -> None:
    match = _CHOICES.fullmatch(setting.allowed)
    if match is None:
        return
    names = match["names"].split(", ")
    for each in value if isinstance(value, tuple) else (value,):
        if (each.upper() if match["any_case"] else each) not in names:
            raise setting.refuse(each, f"String must be one of: {', '.join(names)}")


def _check_throttled(setting: ConfigKey, value: Any) -> None:
    """Validate like Kafka's ``ThrottledReplicaListValidator``: ``*``, or pairs of a partition and a broker."""
    if setting.allowed != _PAIRS_ALLOWED or value == ("*",):
        return
    if not all(_PAIR.fullmatch(each) for each in value):
        reason = f"must be the literal '*' or a list of replicas in the following format: {_PAIRS_ALLOWED}"
        raise setting.refuse(f"[{', '.join(value)}]", f"{setting.name} {reason}")


@cache
def config_keys(resource: str) -> Mapping[str, ConfigKey]:
    """Return the config definitions of a resource type by name.

    The types are ``TOPIC``, ``BROKER``, ``GROUP`` and ``CLIENT_METRICS``.
    """
    text = (files("kafka_msgs.broker.controller") / "settings.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return {
        name: ConfigKey(
            name,
            kind,
            None if default == "null" else default,
            allowed,
            internal="internal" in flags,
            dynamic=owner != BROKER or "dynamic" in flags,
            effect=effect,
            synonyms=tuple(_synonym(each) for names in synonyms for each in names.split(",")),
        )
        for owner, name, kind, default, allowed, flags, effect, *synonyms in rows
        if owner == resource
    }


def _synonym(text: str) -> tuple[str, int]:
    name, _, factor = text.partition("*")
    return name, int(factor or 1)


def log_effect(setting: ConfigKey, resource: str, *, telemetry: bool = False) -> None:
    """Log a warning for a config of a resource if it has no effect."""
    if setting.effect == "telemetry" and not telemetry:
        _LOG.warning("%s of %s has no effect without BrokerConfig.telemetry", setting.name, resource)
    elif setting.effect == "none" or setting.replaced:
        _LOG.warning("%s of %s has no effect in an embedded broker", setting.name, resource)
    elif setting.effect == "start":
        _LOG.warning("%s of %s takes effect when a broker starts", setting.name, resource)


class BrokerConfigs:
    """The broker configs of a cluster: dynamic values of all brokers, static values, and Kafka's defaults.

    ``static`` holds the values given at the start, and ``dynamic`` returns the values that clients have set since then.
    Raises ``OptionError`` for an unknown name, an invalid value, or a config that an attribute replaces.
    """

    def __init__(self, static: Mapping[str, str], dynamic: Callable[[], Mapping[str, str]] = dict) -> None:
        self._defs = config_keys(BROKER)
        self._dynamic = dynamic
        self.static = dict(static)
        for name, text in static.items():
            self._check(name, text)

    def _check(self, name: str, text: str) -> None:
        setting = self._defs.get(name)
        if setting is None:
            raise _wrong(name, text, no_such("broker config", name, self._defs))
        if setting.replaced:
            raise _wrong(name, text, f"set {setting.effect} instead")
        try:
            setting.check(text)
        except RequestRefusedError as error:
            raise _wrong(name, text, str(error.message)) from None
        if setting.effect == "none":
            log_effect(setting, "the brokers")

    def text(self, name: str) -> str | None:
        """Return a config as text, or None if it has no value."""
        setting = self._defs[name]
        if setting.effect == "none":
            raise InternalError(reason=f"{name} has an effect, but the table of configs denies it")
        for values in (self._dynamic(), self.static):
            if name in values:
                return setting.normalize(values[name])
        return setting.default

    def number(self, name: str) -> int:
        """Return an integer config."""
        text = self.text(name)
        if text is None:
            raise InternalError(reason=f"{name} has no value")
        return int(text)

    def flag(self, name: str) -> bool:
        """Return a boolean config."""
        return self.text(name) == "true"


def _wrong(name: str, text: str, reason: str) -> OptionError:
    return OptionError(source="BrokerConfig", option=name, value=text, reason=reason)
