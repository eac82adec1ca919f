"""JSON web tokens (RFC 7519) of OAUTHBEARER clients: their claims, and their validation.

Without keys, tokens are unsecured: anybody can create one, as with Kafka's
``OAuthBearerUnsecuredValidatorCallbackHandler``. With keys, a key must have made the signature, as with Kafka's
``BrokerJwtValidator``.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from kafka_msgs.broker.controller.config_defs import BrokerConfigs

__all__ = ["InvalidTokenError", "TokenValidator", "decode_base64"]

_PARTS: Final = 3
_MS: Final = 1000
_UNSECURED: Final = "none"


class InvalidTokenError(Exception):
    """A token that is not accepted."""


class SignatureKeys(Protocol):
    """The keys of an authority."""

    def verify(self, header: Mapping[str, Any], data: bytes, signature: bytes) -> None:
        """Raise ``InvalidTokenError`` unless ``signature`` is a key's signature of ``data``."""


@frozen
class BearerToken:
    """An accepted token. ``expires_at`` is in milliseconds since the epoch."""

    principal: str
    expires_at: int


@frozen
class TokenValidator:
    """The rules for tokens: Kafka's configs ``sasl.oauthbearer.*``. ``keys`` None accepts unsecured tokens."""

    keys: SignatureKeys | None
    audience: frozenset[str]
    issuer: str | None
    principal_claim: str
    scope_claim: str
    clock_skew_ms: int

    @classmethod
    def of(cls, configs: BrokerConfigs, keys: SignatureKeys | None) -> TokenValidator:
        """Return the validator with the configs of a broker."""
        text = configs.text
        return cls(
            keys=keys,
            audience=frozenset(filter(None, (text("sasl.oauthbearer.expected.audience") or "").split(","))),
            issuer=text("sasl.oauthbearer.expected.issuer"),
            principal_claim=text("sasl.oauthbearer.sub.claim.name") or "sub",
            scope_claim=text("sasl.oauthbearer.scope.claim.name") or "scope",
            clock_skew_ms=_MS * configs.number("sasl.oauthbearer.clock.skew.seconds"),
        )

    def validate(self, text: str, now: int) -> BearerToken:
        """Return the token in a text, at a time in milliseconds. Raises ``InvalidTokenError``."""
        parts = text.split(".")
        if len(parts) != _PARTS:
            raise InvalidTokenError(f"the token has {len(parts)} parts")
        header, claims = _object(parts[0]), _object(parts[1])
        self._check_signature(header, ".".join(parts[:2]).encode(), parts[2])
        self._check_origin(claims)
        return BearerToken(self._principal(claims), self._expiry(claims, now))

    def _check_signature(self, header: Mapping[str, Any], data: bytes, signature: str) -> None:
        if self.keys is not None:
            self.keys.verify(header, data, decode_base64(signature))
        elif header.get("alg") != _UNSECURED or signature:
            raise InvalidTokenError("the token is signed, and the broker has no keys")

    def _check_origin(self, claims: Mapping[str, Any]) -> None:
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidTokenError("the issuer is not the expected one")
        audience = claims.get("aud", ())
        audience = {audience} if isinstance(audience, str) else set(_texts(audience, "aud"))
        if self.audience and self.audience.isdisjoint(audience):
            raise InvalidTokenError("the audience is not the expected one")

    def _principal(self, claims: Mapping[str, Any]) -> str:
        name = claims.get(self.principal_claim)
        if not isinstance(name, str) or not name.strip():
            raise InvalidTokenError(f"the claim {self.principal_claim} is missing")
        scope = claims.get(self.scope_claim, "")
        if not isinstance(scope, str):
            _texts(scope, self.scope_claim)
        return name

    def _expiry(self, claims: Mapping[str, Any], now: int) -> int:
        issued = claims.get("iat")
        if issued is None and self.keys is not None:
            raise InvalidTokenError("the claim iat is missing")
        if issued is not None and _time(claims, "iat") > now + self.clock_skew_ms:
            raise InvalidTokenError("the token is from the future")
        expires = _time(claims, "exp")
        if expires <= now - self.clock_skew_ms:
            raise InvalidTokenError("the token has expired")
        if issued is not None and expires <= _time(claims, "iat"):
            raise InvalidTokenError("the token expires before it was issued")
        return expires


def _time(claims: Mapping[str, Any], name: str) -> int:
    """Return the time in a claim in milliseconds."""
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e15:
        raise InvalidTokenError(f"the claim {name} is not a time")
    return int(value * _MS)


def _texts(value: object, name: str) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise InvalidTokenError(f"the claim {name} is not a list of texts")
    return list(value)


def decode_base64(text: str) -> bytes:
    """Return the bytes of URL-safe base64 without padding. Raises ``InvalidTokenError``."""
    try:
        return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise InvalidTokenError("a part is not base64") from None


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(decode_base64(text))
    except (ValueError, RecursionError):
        raise InvalidTokenError("a part is not JSON") from None
    if not isinstance(found, dict):
        raise InvalidTokenError("a part is not a JSON object")
    return found
