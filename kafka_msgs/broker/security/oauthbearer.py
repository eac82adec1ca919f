"""The server side of the SASL mechanism OAUTHBEARER (RFC 7628), as in Kafka's ``OAuthBearerSaslServer``, and key sets.

A rejected token is answered with a JSON object that contains the reason. The client then sends a single byte, and the
authentication fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from kafka_msgs.broker.client_session import SaslServer
from kafka_msgs.broker.security.credentials import OAUTHBEARER
from kafka_msgs.broker.security.tokens import InvalidTokenError, TokenValidator, decode_base64
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import MissingExtraError, OptionError, RequestRefusedError

if TYPE_CHECKING:
    from kafka_msgs.broker.controller.config_defs import BrokerConfigs

__all__ = ["KeySet", "OAuthBearerServer", "new_token_validator"]

KEYS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_HALF: Final = 32
"""The size of each of the two numbers of an ES256 signature, in bytes."""

Verify = Callable[[bytes, bytes], None]
"""Raise an exception unless the first argument is a signature of the second one."""


class _Key(NamedTuple):
    name: str | None
    algorithm: str
    verify: Verify


class KeySet:
    """The public keys of an authority. Keys of other types than RSA and P-256 are ignored, as the RFC demands.

    Raises ``MissingExtraError`` without the package ``cryptography``, and ``ValueError`` for an invalid key.
    """

    def __init__(self, keys: Mapping[str, Any]) -> None:
        try:
            from cryptography.exceptions import InvalidSignature
        except ImportError as error:
            feature = "OAUTHBEARER with signed tokens"
            raise MissingExtraError(package="cryptography", feature=feature, extra="oauth") from error
        self._invalid = InvalidSignature
        made = (_MAKERS[each["kty"]](each) for each in keys["keys"] if each.get("kty") in _MAKERS)
        self._keys = [each for each in made if each is not None]

    def verify(self, header: Mapping[str, Any], data: bytes, signature: bytes) -> None:
        """Raise ``InvalidTokenError`` unless ``signature`` is a key's signature of ``data``."""
        algorithm, name = header.get("alg"), header.get("kid")
        for key in self._keys:
            if key.algorithm == algorithm and (name is None or key.name in (None, name)):
                try:
                    key.verify(signature, data)
                except (self._invalid, ValueError):
                    continue
                return
        raise InvalidTokenError("the signature is not valid")


def _rsa(key: Mapping[str, Any]) -> _Key:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
    from cryptography.hazmat.primitives.hashes import SHA256

    public = RSAPublicNumbers(_number(key["e"]), _number(key["n"])).public_key()
    return _Key(key.get("kid"), "RS256", lambda signature, data: public.verify(signature, data, PKCS1v15(), SHA256()))


def _elliptic_curve(key: Mapping[str, Any]) -> _Key | None:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicNumbers
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    if key.get("crv") != "P-256":
        return None
    public = EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), SECP256R1()).public_key()

    def verify(signature: bytes, data: bytes) -> None:
        if len(signature) != 2 * _HALF:
            raise ValueError("the signature has the wrong size")
        halves = (int.from_bytes(half, "big") for half in (signature[:_HALF], signature[_HALF:]))
        public.verify(encode_dss_signature(*halves), data, ECDSA(SHA256()))

    return _Key(key.get("kid"), "ES256", verify)


_MAKERS: Final[Mapping[str, Callable[[Mapping[str, Any]], _Key | None]]] = {"RSA": _rsa, "EC": _elliptic_curve}


def _number(text: str) -> int:
    return int.from_bytes(decode_base64(text), "big")


def read_key_set(url: str) -> KeySet:
    """Return the keys in the file of a ``file:`` URL, once.

    Raises ``OptionError`` for another URL and for a file without keys, and ``MissingExtraError``.
    """
    parts = urlsplit(url)
    if parts.scheme != "file":
        raise _wrong(url, "only file: URLs are supported")
    try:
        return KeySet(json.loads(Path(unquote(parts.path)).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InvalidTokenError) as error:
        raise _wrong(url, f"it is not a set of keys: {error}") from None


def _wrong(url: str, reason: str) -> OptionError:
    return OptionError(source="BrokerConfig", option=KEYS_URL, value=url, reason=reason)


_NAME: Final = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_RESPONSE: Final = re.compile(
    rf"n,(?:a=(?P<name>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01", re.ASCII
)
_AUTH: Final = re.compile(r"bearer +(?P<token>[\w.~+/-]+=*)", re.ASCII | re.IGNORECASE)
_END: Final = b"\x01"
_INVALID: Final = '{"status":"invalid_token"}'


def new_token_validator(configs: BrokerConfigs) -> TokenValidator:
    """Return the validator of a broker: with the keys in the file of ``KEYS_URL``, or for unsecured tokens.

    Raises ``OptionError`` and ``MissingExtraError``.
    """
    url = configs.text(KEYS_URL)
    return TokenValidator.of(configs, None if url is None else read_key_set(url))


class OAuthBearerServer(SaslServer):
    """An authentication with a token. ``now`` returns the time in milliseconds."""

    def __init__(self, validator: TokenValidator, now: Callable[[], int]) -> None:
        self._validator = validator
        self._now = now
        self._refused = False

    def evaluate(self, token: bytes) -> bytes:
        """Return the response to a client token: empty for a valid one. Raises ``RequestRefusedError``."""
        if self._refused and token == _END:
            raise RequestRefusedError(ErrorCode.SASL_AUTHENTICATION_FAILED, _INVALID)
        name, text = _parse(token)
        try:
            found = self._validator.validate(text, self._now())
        except InvalidTokenError:
            self._refused = True
            return _INVALID.encode()
        if name not in ("", found.principal):
            raise RequestRefusedError(
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                f"Authentication failed: Client requested an authorization id ({name}) that is different from "
                f"the token's principal name ({found.principal})",
            )
        self.user, self.expires_at = found.principal, found.expires_at
        return b""


def _parse(token: bytes) -> tuple[str, str]:
    """Return the authorization id and the bearer token of a client's message."""
    match = _RESPONSE.fullmatch(token.decode("utf-8", "replace"))
    pairs = dict(each.split("=", 1) for each in match["pairs"].split("\x01")[:-1]) if match else {}
    bearer = _AUTH.fullmatch(pairs.get("auth", ""))
    if match is None or bearer is None:
        message = "Authentication failed during authentication due to invalid credentials with SASL mechanism "
        raise RequestRefusedError(ErrorCode.SASL_AUTHENTICATION_FAILED, message + OAUTHBEARER)
    return (match["name"] or "").replace("=2C", ",").replace("=3D", "="), bearer["token"]
