"""The server side of the SASL mechanism OAUTHBEARER (RFC 7628), as in Kafka's ``OAuthBearerSaslServer``.

A rejected token is answered with a JSON object that contains the reason. The client then sends a single byte, and the
authentication fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka_msgs.broker.security.credentials import OAUTHBEARER
from kafka_msgs.broker.security.key_sets import KEYS_URL, read_key_set
from kafka_msgs.broker.security.tokens import InvalidTokenError, TokenValidator
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError

if TYPE_CHECKING:
    from kafka_msgs.broker.controller.config_defs import BrokerConfigs

__all__ = ["OAuthBearerServer", "new_token_validator"]

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


class OAuthBearerServer:
    """An authentication with a token. ``now`` returns the time in milliseconds."""

    def __init__(self, validator: TokenValidator, now: Callable[[], int]) -> None:
        self._validator = validator
        self._now = now
        self._refused = False
        self.user: str | None = None
        self.expires_at: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Return the response to a client token: empty for a valid one. Raises ``RequestRefusedError``."""
        if self._refused and token == _END:
            raise RequestRefusedError(error=ErrorCode.SASL_AUTHENTICATION_FAILED, message=_INVALID)
        name, text = _parse(token)
        try:
            found = self._validator.validate(text, self._now())
        except InvalidTokenError:
            self._refused = True
            return _INVALID.encode()
        if name not in ("", found.principal):
            raise RequestRefusedError(
                error=ErrorCode.SASL_AUTHENTICATION_FAILED,
                message=f"Authentication failed: Client requested an authorization id ({name}) that is different from "
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
        raise RequestRefusedError(error=ErrorCode.SASL_AUTHENTICATION_FAILED, message=message + OAUTHBEARER)
    return (match["name"] or "").replace("=2C", ",").replace("=3D", "="), bearer["token"]
