"""Settings by the names that Kafka's own clients use, such as ``security.protocol`` and ``sasl.jaas.config``.

The names are those of ``org.apache.kafka.clients.CommonClientConfigs`` and of the classes ``SslConfigs`` and
``SaslConfigs``. Names that mean nothing here are ignored, as Kafka ignores them: one file serves several tools.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from kafka_msgs.client.auth import Credentials, OAuthBearer, Plain, Scram
from kafka_msgs.errors import OptionError

if TYPE_CHECKING:
    import ssl

__all__ = ["settings_of", "tls_of"]

_SECURITY: Final = "security.protocol"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_JAAS: Final = "sasl.jaas.config"
_MECHANISM: Final = "sasl.mechanism"
_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_MS: Final = 1000.0
_HOUR: Final = 3600

_SECONDS: Final[Mapping[str, str]] = {
    "default.api.timeout.ms": "timeout",
    "request.timeout.ms": "request_timeout",
    "socket.connection.setup.timeout.ms": "connect_timeout",
    "retry.backoff.ms": "backoff",
    "retry.backoff.max.ms": "longest_backoff",
    "metadata.max.age.ms": "metadata_age",
}
"""Times: Kafka's names (in ms), and ours (in seconds)."""

_OPTION: Final = re.compile(r"""\s*([\w.\-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""")


def settings_of(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of a ``ClientConfig``. Raises ``OptionError`` for a wrong value."""
    settings: dict[str, Any] = {}
    if "bootstrap.servers" in properties:
        settings["bootstrap_servers"] = properties["bootstrap.servers"]
    if properties.get("client.id"):
        settings["client_id"] = properties["client.id"]
    for name, ours in _SECONDS.items():
        if name in properties:
            settings[ours] = _milliseconds(name, properties[name])
    context = tls_of(properties)
    if context is not None:
        settings["tls"] = context
    if _protocol(properties).startswith("SASL"):
        settings["credentials"] = _credentials(properties)
    return settings


def tls_of(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the context of encrypted connections, or None for plain ones. Raises ``OptionError`` for a wrong value."""
    return _tls(properties) if _protocol(properties).endswith("SSL") else None


def _protocol(properties: Mapping[str, str]) -> str:
    protocol = properties.get(_SECURITY, "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise _refusal(_SECURITY, properties[_SECURITY], f"expected one of {', '.join(_PROTOCOLS)}")
    return protocol


def _milliseconds(name: str, text: str) -> float:
    if not text.strip().isdecimal():
        raise _refusal(name, text, "expected a number of milliseconds")
    return int(text) / _MS


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    from kafka_msgs.client.tls import context_of_texts

    check = properties.get("ssl.endpoint.identification.algorithm", "https").strip() != ""
    return context_of_texts(
        authorities=_pem(properties, "truststore", "certificates"),
        certificate=_pem(properties, "keystore", "certificate.chain"),
        key=properties.get("ssl.keystore.key"),
        password=properties.get("ssl.key.password"),
        check_host_name=check,
    )


def _pem(properties: Mapping[str, str], store: str, inline: str) -> str | None:
    """Return the text of a store in PEM, from a file or from the properties."""
    text, location = properties.get(f"ssl.{store}.{inline}"), properties.get(f"ssl.{store}.location")
    if text is not None or location is None:
        return text
    kind = properties.get(f"ssl.{store}.type", "JKS").strip().upper()
    if kind != "PEM":
        reason = f"stores of type {kind} cannot be read; convert it, and set ssl.{store}.type=PEM"
        raise _refusal(f"ssl.{store}.location", location, reason)
    return _read(f"ssl.{store}.location", Path(location))


def _credentials(properties: Mapping[str, str]) -> Credentials:
    mechanism = properties.get(_MECHANISM, "GSSAPI").strip()
    if mechanism == "OAUTHBEARER":
        return OAuthBearer(_token(properties), _extensions(properties))
    if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        reason = "expected PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
        raise _refusal(_MECHANISM, mechanism, reason)
    options = _login_options(properties)
    if "username" not in options or "password" not in options:
        raise _refusal(_JAAS, None, "username and password are missing")
    if mechanism == "PLAIN":
        return Plain(options["username"], options["password"])
    return Scram(options["username"], options["password"], mechanism)


def _login_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the login module. Its value is never shown: it has secrets."""
    text = properties.get(_JAAS, "").strip()
    module, _, rest = text.partition(" ")
    _, _, rest = rest.strip().partition(" ")
    if not module or not text.endswith(";"):
        raise _refusal(_JAAS, None, 'expected MODULE required NAME="VALUE" ...;')
    return {name: _unquoted(value) for name, value in _OPTION.findall(rest)}


def _unquoted(text: str) -> str:
    if text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _token(properties: Mapping[str, str]) -> Callable[[], str]:
    """Return what gives the token: a file, or an unsecured token that is made here (for tests)."""
    url = properties.get(_TOKEN_URL)
    if url is not None:
        place = urlsplit(url)
        if place.scheme != "file":
            reason = "only file: is supported here; give a function for the token in Python"
            raise _refusal(_TOKEN_URL, url, reason)
        return lambda: _read(_TOKEN_URL, Path(unquote(place.path))).strip()
    claims = {
        name.removeprefix("unsecuredLoginStringClaim_"): value
        for name, value in _login_options(properties).items()
        if name.startswith("unsecuredLoginStringClaim_")
    }
    if not claims:
        raise _refusal(_JAAS, None, f"set {_TOKEN_URL}, or unsecuredLoginStringClaim_sub for tests")
    return lambda: _unsecured_token(claims)


def _extensions(properties: Mapping[str, str]) -> dict[str, str]:
    if _JAAS not in properties:
        return {}
    options = _login_options(properties)
    return {
        name.removeprefix("extension_").removeprefix("unsecuredLoginExtension_"): value
        for name, value in options.items()
        if name.startswith(("extension_", "unsecuredLoginExtension_"))
    }


def _unsecured_token(claims: Mapping[str, str]) -> str:
    """Return a JSON web token without a signature (RFC 7515, alg ``none``), valid for an hour."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"iat": now, "exp": now + _HOUR, **claims})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return ".".join((*encoded, ""))


def _read(option: str, path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "the file is not a text"
        raise _refusal(option, str(path), reason) from None


def _refusal(option: str, value: object, reason: str) -> OptionError:
    return OptionError(source="client", option=option, value=value, reason=reason)
