"""Client settings from Kafka's property names, such as ``security.protocol`` and ``sasl.jaas.config``.

``property_table`` lists the names. This module creates the TLS context and the credentials, which combine several
properties each, with the names of Kafka (``SslConfigs``, ``SaslConfigs``) or of librdkafka.
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

from kafka_msgs.client.auth import Credentials, OAuthBearerCredentials, PlainCredentials, ScramCredentials
from kafka_msgs.client.property_parsing import parse_settings
from kafka_msgs.errors import OptionError

if TYPE_CHECKING:
    import ssl

__all__ = ["parse_client_properties", "parse_tls"]

_SECURITY: Final = "security.protocol"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_JAAS: Final = "sasl.jaas.config"
_MECHANISM: Final = "sasl.mechanism"
_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_CLIENT: Final = "sasl.oauthbearer.client.credentials.client"
_HOUR: Final = 3600

_OPTION: Final = re.compile(r"""\s*([\w.\-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""")


def parse_client_properties(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the ``ClientConfig`` fields in properties with Kafka's names. Raises ``OptionError``."""
    settings = parse_settings(properties, "client")
    if not settings.get("client_id", "set"):
        del settings["client_id"]
    context = parse_tls(properties)
    if context is not None:
        settings["tls"] = context
    if _protocol(properties).startswith("SASL"):
        settings["credentials"] = _credentials(properties)
    return settings


def parse_tls(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS context, or None for plain-text connections. Raises ``OptionError`` for an invalid value."""
    return _tls(properties) if _protocol(properties).endswith("SSL") else None


def _protocol(properties: Mapping[str, str]) -> str:
    protocol = properties.get(_SECURITY, "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise _refusal(_SECURITY, properties[_SECURITY], f"expected one of {', '.join(_PROTOCOLS)}")
    return protocol


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    from kafka_msgs.client.tls import tls_context_from_pem

    if not _is_true(properties, "enable.ssl.certificate.verification"):
        raise _refusal("enable.ssl.certificate.verification", "false", "certificates are always verified")
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    return tls_context_from_pem(
        authorities=_pem(properties, "ssl.truststore.certificates", "ssl.truststore", "ssl.ca.location"),
        certificate=_pem(properties, "ssl.keystore.certificate.chain", "ssl.keystore", "ssl.certificate.location"),
        key=_pem(properties, "ssl.keystore.key", None, "ssl.key.location"),
        password=properties.get("ssl.key.password"),
        check_host_name=algorithm not in ("", "none") and _is_true(properties, "ssl.check.hostname"),
    )


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    """Return a boolean that is true by default."""
    text = properties.get(name, "true").strip().lower()
    if text not in ("true", "false"):
        raise _refusal(name, text, "expected true or false")
    return text == "true"


def _pem(properties: Mapping[str, str], inline: str, store: str | None, file: str) -> str | None:
    """Return PEM text from the properties, from Kafka's store, or from librdkafka's file property."""
    if inline in properties:
        return properties[inline]
    if file in properties:
        return _read(file, properties[file])
    if store is None or f"{store}.location" not in properties:
        return None
    location = properties[f"{store}.location"]
    kind = properties.get(f"{store}.type", "JKS").strip().upper()
    if kind != "PEM":
        reason = f"stores of type {kind} cannot be read; convert it, and set {store}.type=PEM"
        raise _refusal(f"{store}.location", location, reason)
    return _read(f"{store}.location", location)


def _credentials(properties: Mapping[str, str]) -> Credentials:
    mechanism = properties.get(_MECHANISM, "GSSAPI").strip()
    if mechanism == "OAUTHBEARER":
        return OAuthBearerCredentials(_token(properties), _extensions(properties))
    if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        reason = "expected PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
        raise _refusal(_MECHANISM, mechanism, reason)
    options = _user(properties)
    if "username" not in options or "password" not in options:
        raise _refusal(_JAAS, None, "username and password are missing")
    if mechanism == "PLAIN":
        return PlainCredentials(options["username"], options["password"])
    return ScramCredentials(options["username"], options["password"], mechanism)


def _user(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the user name and password from librdkafka's properties or from the options of Kafka's login module."""
    given = {name: properties[f"sasl.{name}"] for name in ("username", "password") if f"sasl.{name}" in properties}
    return given or _login_options(properties)


def _login_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the login module. Errors never show its value, which contains secrets."""
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
    """Return the token source: an endpoint, a file, or a locally created unsecured token (for tests)."""
    url = properties.get(_TOKEN_URL)
    if url is not None and urlsplit(url).scheme in ("http", "https"):
        return _client_credentials(url, properties)
    if url is not None:
        place = urlsplit(url)
        if place.scheme != "file":
            raise _refusal(_TOKEN_URL, None, "expected a URL of the scheme https or file")
        return lambda: _read(_TOKEN_URL, unquote(place.path)).strip()
    claims = {
        name.removeprefix("unsecuredLoginStringClaim_"): value
        for name, value in _login_options(properties).items()
        if name.startswith("unsecuredLoginStringClaim_")
    }
    if not claims:
        raise _refusal(_JAAS, None, f"set {_TOKEN_URL}, or unsecuredLoginStringClaim_sub for tests")
    return lambda: _unsecured_token(claims)


def _client_credentials(url: str, properties: Mapping[str, str]) -> Callable[[], str]:
    """Return the function that requests tokens, configured like Kafka 4.1, librdkafka or the login module."""
    from kafka_msgs.client.oidc import ClientCredentials

    login = _login_options(properties) if _JAAS in properties else {}
    user = properties.get(f"{_CLIENT}.id", login.get("clientId"))
    secret = properties.get(f"{_CLIENT}.secret", login.get("clientSecret"))
    if not user or not secret:
        raise _refusal(f"{_CLIENT}.id", None, f"{_CLIENT}.id and {_CLIENT}.secret are needed for the token endpoint")
    return ClientCredentials(url, user, secret, properties.get("sasl.oauthbearer.scope", login.get("scope")))


def _extensions(properties: Mapping[str, str]) -> dict[str, str]:
    given = properties.get("sasl.oauthbearer.extensions", "")
    pairs = dict(each.split("=", 1) for each in given.split(",") if "=" in each)
    if _JAAS not in properties:
        return pairs
    options = _login_options(properties)
    return pairs | {
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


def _read(option: str, path: str) -> str:
    reason = "the file is not a text"
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError as error:
        reason = error.strerror or reason
    except UnicodeDecodeError:
        pass
    raise _refusal(option, path, reason)


def _refusal(option: str, value: object, reason: str) -> OptionError:
    return OptionError(source="client", option=option, value=value, reason=reason)
