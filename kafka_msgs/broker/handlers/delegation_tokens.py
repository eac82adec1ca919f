"""Delegation tokens (KIP-48): the responses of a cluster without ``delegation.token.secret.key``, which has none.

As in Kafka, a client without authentication may not request tokens, and all others get DELEGATION_TOKEN_AUTH_DISABLED.
"""

from __future__ import annotations

from typing import Any, Final

from kafka_msgs.broker.client_session import ANONYMOUS, Principal
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kafka_msgs.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kafka_msgs.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kafka_msgs.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kafka_msgs.messages.renew_delegation_token_request import RenewDelegationTokenRequest

__all__ = ["HANDLERS"]

_NEVER: Final = -1
_FIRST_WITH_OWNERS: Final = 3


def _error(call: ServerCall[Any]) -> ErrorCode:
    if call.session.listener.protocol == "PLAINTEXT" or call.session.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def _times(error: ErrorCode) -> int:
    """Return the times of a response. Kafka's brokers and controllers differ in the times of a refused request."""
    return 0 if error == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED else _NEVER


def _refuse_change(call: ServerCall[Any]) -> None:
    error = _error(call)
    call.respond(call.request.response_class()(error_code=error, expiry_timestamp_ms=_times(error)))


def _refuse_creation(call: ServerCall[CreateDelegationTokenRequest]) -> None:
    kind, name = call.request.owner_principal_type, call.request.owner_principal_name
    owner = requester = call.session.principal
    if name and kind is None:
        owner = requester = ANONYMOUS
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    else:
        owner = Principal(kind or "", name) if name else requester
        error = _error(call)
        permitted = owner == requester or call.allows(AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner))
        if error == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED and not permitted:
            error = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    fields: dict[str, Any] = {"principal_type": owner.type, "principal_name": owner.name}
    fields |= dict.fromkeys(("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"), _times(error))
    if call.version >= _FIRST_WITH_OWNERS:
        fields |= {
            "token_requester_principal_type": requester.type,
            "token_requester_principal_name": requester.name,
        }
    call.respond(CreateDelegationTokenResponse(error_code=error, **fields))


HANDLERS: Final = (
    ApiHandler(CreateDelegationTokenRequest, _refuse_creation),
    ApiHandler(RenewDelegationTokenRequest, _refuse_change),
    ApiHandler(ExpireDelegationTokenRequest, _refuse_change),
    ApiHandler(DescribeDelegationTokenRequest, lambda call: call.fail(_error(call))),
)
