"""Connection settings that need not be repeated: environment variables, and profiles in a file.

    default = "test"

    [test]
    bootstrap-server = "localhost:9092"

    [production]
    bootstrap-server = "kafka-1.example.com:9093,kafka-2.example.com:9093"
    command-config = "production.properties"
    timeout = "30s"
    registry = "https://schemas.example.com"
    properties = { "security.protocol" = "SASL_SSL" }

The file is ``$KAFKA_MSGS_PROFILES``, or ``kafka-msgs/profiles.toml`` in the user's configuration directory. Relative
paths in it start at its directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from kafka_msgs.errors import OptionError
from kafka_msgs.suggestions import did_you_mean, no_such, similar_names

__all__ = ["ENVIRONMENT", "ConnectionProfile", "load_profile"]

ENVIRONMENT: Final[Mapping[str, str]] = {
    "bootstrap-server": "KAFKA_MSGS_BOOTSTRAP_SERVER",
    "command-config": "KAFKA_MSGS_COMMAND_CONFIG",
    "timeout": "KAFKA_MSGS_TIMEOUT",
    "registry": "KAFKA_MSGS_REGISTRY",
}
"""The environment variable of each setting; it overrides the profile."""

_FILE: Final = "KAFKA_MSGS_PROFILES"
_NAME: Final = "KAFKA_MSGS_PROFILE"
_PROPERTIES: Final = "properties"


@frozen
class ConnectionProfile:
    """The settings of the environment and of a profile, by option name, and the client properties."""

    settings: Mapping[str, str] = field(factory=dict)
    properties: Mapping[str, str] = field(factory=dict)


def load_profile(name: str | None) -> ConnectionProfile:
    """Return a named profile, or the default one, with the settings of the environment. Raises ``OptionError``."""
    path = _path()
    entry = _entry(path, name or os.environ.get(_NAME))
    properties = {key: str(value) for key, value in entry.pop(_PROPERTIES, {}).items()}
    if "command-config" in entry:
        entry["command-config"] = str(path.parent / entry["command-config"])
    from_environment = {key: os.environ[variable] for key, variable in ENVIRONMENT.items() if variable in os.environ}
    return ConnectionProfile({**entry, **from_environment}, properties)


def _path() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(os.environ.get(_FILE) or Path(home) / "kafka-msgs" / "profiles.toml")


def _entry(path: Path, name: str | None) -> dict[str, Any]:
    if name is None and not path.exists():
        return {}
    profiles = _read(path)
    wanted = name or profiles.get("default")
    if wanted is None:
        return {}
    entry = profiles.get(wanted)
    if not isinstance(entry, dict):
        names = [key for key, value in profiles.items() if isinstance(value, dict)]
        raise OptionError(
            source=str(path), option="profile", value=wanted, reason=no_such("profile", str(wanted), names)
        )
    for key, value in entry.items():
        if key not in (*ENVIRONMENT, _PROPERTIES) or isinstance(value, dict) != (key == _PROPERTIES):
            near = did_you_mean(similar_names(key, (*ENVIRONMENT, _PROPERTIES), 1))
            reason = f"expected {', '.join(ENVIRONMENT)}, or the table {_PROPERTIES}{near}"
            raise OptionError(source=str(path), option=key, value=None, reason=reason)
    return {key: value if key == _PROPERTIES else str(value) for key, value in entry.items()}


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(source=str(path), option="profiles", value=None, reason=reason) from None
