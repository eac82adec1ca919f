"""Delegation tokens (KIP-48): the responses of a cluster without ``delegation.token.secret.key``, which has none.

As in Kafka, a client without authentication may not request tokens, and all others get DELEGATION_TOKEN_AUTH_DISABLED.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kafka_msgs.broker.client_session import ANONYMOUS, Principal
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Response
from kafka_msgs.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kafka_msgs.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kafka_msgs.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kafka_msgs.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kafka_msgs.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kafka_msgs.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kafka_msgs.messages.renew_delegation_token_response import RenewDelegationTokenResponse

__all__ = ["HANDLERS"]

_NEVER: Final = -1
_FIRST_WITH_OWNERS: Final = 3


def _error(call: ServerCall[Any]) -> ErrorCode:
    if call.session.listener.protocol == "PLAINTEXT" or call.session.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def _refuse(call: ServerCall[Any]) -> None:
    call.fail(_error(call))


def _refuse_change(call: ServerCall[Any], response: Callable[..., Response]) -> None:
    error = _error(call)
    call.respond(response(error_code=error, expiry_timestamp_ms=_times(error)))


def _times(error: ErrorCode) -> int:
    """Return the times of a response. Kafka's brokers and controllers differ in the times of a refused request."""
    return 0 if error == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED else _NEVER


def _refuse_creation(call: ServerCall[CreateDelegationTokenRequest]) -> None:
    owner = requester = call.session.principal
    if call.request.owner_principal_name:
        if call.request.owner_principal_type is None:
            _respond(call, ErrorCode.UNKNOWN_SERVER_ERROR, ANONYMOUS, ANONYMOUS)
            return
        owner = Principal(call.request.owner_principal_type, call.request.owner_principal_name)
    error = _error(call)
    permitted = owner == requester or call.allows(AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner))
    if error == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED and not permitted:
        error = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    _respond(call, error, owner, requester)


def _respond(
    call: ServerCall[CreateDelegationTokenRequest], error: ErrorCode, owner: Principal, requester: Principal
) -> None:
    times = _times(error)
    call.respond(
        CreateDelegationTokenResponse(
            error_code=error,
            principal_type=owner.type,
            principal_name=owner.name,
            issue_timestamp_ms=times,
            expiry_timestamp_ms=times,
            max_timestamp_ms=times,
            **(_requester(requester) if call.version >= _FIRST_WITH_OWNERS else {}),
        )
    )


def _requester(principal: Principal) -> dict[str, Any]:
    return {"token_requester_principal_type": principal.type, "token_requester_principal_name": principal.name}


HANDLERS: Final = (
    ApiHandler(CreateDelegationTokenRequest, _refuse_creation),
    ApiHandler(RenewDelegationTokenRequest, partial(_refuse_change, response=RenewDelegationTokenResponse)),
    ApiHandler(ExpireDelegationTokenRequest, partial(_refuse_change, response=ExpireDelegationTokenResponse)),
    ApiHandler(DescribeDelegationTokenRequest, _refuse),
)
