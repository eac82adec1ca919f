"""The first requests on a connection: API versions (KIP-35, KIP-511), and authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.dial import Dialer
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.network import Network
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import ConnectionFailedError
from kafka_msgs.messages.api_versions_request import ApiVersionsRequest
from kafka_msgs.messages.api_versions_response import ApiVersionsResponse

if TYPE_CHECKING:
    from kafka_msgs.client.broker_connection import BrokerConnection

__all__ = ["REAUTHENTICATION_SHARE", "shake_hands"]

REAUTHENTICATION_SHARE: Final = 0.85
"""The share of a session's lifetime after which the client re-authenticates (KIP-368)."""
_SOFTWARE: Final = "kafka-msgs"
_OLDEST: Final = 0


def shake_hands(
    connection: BrokerConnection, network: Network, config: ClientConfig, dialer: Dialer, deadline: float
) -> Flow[None]:
    """Negotiate versions, and authenticate the client. Raises ``ConnectionFailedError`` and ``AuthenticationError``."""
    connection.learn_versions((yield from _ask_versions(connection, dialer, deadline)))
    if config.credentials is not None:
        dialer.warn_of_credentials(connection.address)
        connection.step = "authenticate"
        lifetime = yield from connection.authenticate(config.credentials, network, deadline)
        connection.reauthenticate_at = None if lifetime is None else network.now() + lifetime * REAUTHENTICATION_SHARE


def _ask_versions(connection: BrokerConnection, dialer: Dialer, deadline: float) -> Flow[ApiVersionsResponse]:
    """Request the broker's API versions, with an older request version if it does not support the first one."""
    from kafka_msgs import __version__

    request = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version=__version__)
    version = dialer.versions_question(connection.address)
    try:
        answer = yield from connection.call(request, version, deadline=deadline)
    except ConnectionFailedError as error:
        if error.retriable:
            dialer.step_down(connection.address)
        raise
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        offered = (each.max_version for each in answer.api_keys if each.api_key == ApiKey.API_VERSIONS)
        version = min(version, next(offered, _OLDEST))
        answer = yield from connection.call(request, version, deadline=deadline)
    if answer.error_code:
        code = ErrorCode(answer.error_code)
        reason = f"ApiVersions: {code.name}"
        raise ConnectionFailedError(
            address=str(connection.address), step="negotiate", reason=reason, retriable=code.retriable
        )
    if not answer.api_keys:
        reason = "ApiVersions: the broker offers no api"
        raise ConnectionFailedError(address=str(connection.address), step="negotiate", reason=reason)
    return answer
