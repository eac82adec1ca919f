"""Broker loggers as config resources (KIP-412): the Python loggers of the embedded broker, and their levels.

All brokers of a process share the loggers. Kafka's name ``root`` is the logger of this package. The source is Kafka's
``RuntimeLoggerManager``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.enums import AlterConfigOp, ConfigSource
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.describe_configs_response import DescribeConfigsResourceResult

__all__ = ["change_levels", "check_broker_id", "describe_loggers"]

_invalid: Final = partial(RequestRefusedError, ErrorCode.INVALID_REQUEST)
_bad_config: Final = partial(RequestRefusedError, ErrorCode.INVALID_CONFIG)

_ROOT: Final = "root"
_PACKAGE: Final = "kafka_msgs"
_LEVELS: Final[Mapping[str, int]] = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": 5,
    "WARN": logging.WARNING,
}


def _loggers() -> dict[str, logging.Logger]:
    names = [name for name in sorted(logging.root.manager.loggerDict) if name.startswith(f"{_PACKAGE}.")]
    return {_ROOT: logging.getLogger(_PACKAGE), **{name: logging.getLogger(name) for name in names}}


def _level_name(logger: logging.Logger) -> str:
    """Return Kafka's name of the highest level that is not above the level of a logger."""
    level = logger.getEffectiveLevel()
    return max((number, name) for name, number in _LEVELS.items() if number <= max(level, _LEVELS["TRACE"]))[1]


def check_broker_id(call: ServerCall[Any], name: str, expected: str, kind: str = "Broker") -> None:
    """Raise ``RequestRefusedError`` for a name other than the id of the receiving broker, with Kafka's message."""
    if not name.lstrip("-").isdecimal():
        raise _invalid(f"{kind} id must be an integer, but it is: {name}")
    if int(name) != call.session.broker_id:
        raise _invalid(f"Unexpected broker id, expected {expected} received {name}")


def describe_loggers(call: ServerCall[Any], name: str) -> Iterator[DescribeConfigsResourceResult]:
    """Yield the loggers of a broker with their levels. Raises ``RequestRefusedError``."""
    if not name:
        raise _invalid("Broker id must not be empty")
    check_broker_id(call, name, f"{call.session.broker_id} but")
    source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return (
        DescribeConfigsResourceResult(
            name=each, value=_level_name(logger), config_source=source, read_only=False, documentation=None
        )
        for each, logger in _loggers().items()
    )


def change_levels(changes: list[tuple[str, int, str | None]], *, validate_only: bool) -> None:
    """Set the levels of loggers, given as names, operations and levels. Raises ``RequestRefusedError``."""
    loggers = _loggers()
    levels = [_checked_level(loggers, *change) for change in changes]
    if not validate_only:
        for (name, _, _), level in zip(changes, levels, strict=True):
            loggers[name].setLevel(level)


def _checked_level(loggers: Mapping[str, logging.Logger], name: str, operation: int, level: str | None) -> int:
    """Return the new level of a logger. A logger without a level inherits one."""
    if operation not in (AlterConfigOp.SET, AlterConfigOp.DELETE):
        shown = AlterConfigOp(operation).name if operation in list(AlterConfigOp) else f"Unknown operation {operation}"
        raise _invalid(f"{shown} operation is not allowed for the BROKER_LOGGER resource")
    if name not in loggers:
        raise _bad_config(f"Logger {name} does not exist!")
    if operation == AlterConfigOp.DELETE:
        if name == _ROOT:
            raise _invalid(f"Removing the log level of the {_ROOT} logger is not allowed")
        return logging.NOTSET
    if level is None or level not in _LEVELS:
        reason = f"it is not a supported log level. Valid log levels are {', '.join(_LEVELS)}"
        raise _bad_config(f"Cannot set the log level of {name} to {level} as {reason}")
    return _LEVELS[level]
