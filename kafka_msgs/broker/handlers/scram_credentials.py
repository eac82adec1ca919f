"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import starmap
from typing import Final, TypeAlias

from kafka_msgs.broker.handlers.response_parts import outcome_of
from kafka_msgs.broker.security.credentials import MECHANISMS, scram_keys
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.struct_copies import copy_as
from kafka_msgs.enums import AclOperation, ScramMechanism
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafka_msgs.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kafka_msgs.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from kafka_msgs.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kafka_msgs.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kafka_msgs.messages.user_scram_credential_record import UserScramCredentialRecord

__all__ = ["HANDLERS"]

_Change: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion

_BY_NUMBER: Final = {mechanism.number: mechanism for mechanism in MECHANISMS.values()}
_MAX_ITERATIONS: Final = 16384
_TWICE: Final = RequestRefusedError(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)


def _describe(call: ServerCall[DescribeUserScramCredentialsRequest]) -> None:
    call.require_cluster(AclOperation.DESCRIBE)
    known = sorted({user for user, _ in call.cluster.image.scram})
    asked = call.request.users
    names = [each.name for each in asked] if asked else known
    counts = Counter(names)
    results = tuple(_described(call, name, counts[name] > 1) for name in dict.fromkeys(names))
    call.respond(DescribeUserScramCredentialsResponse(results=results))


def _described(
    call: ServerCall[DescribeUserScramCredentialsRequest], user: str, repeated: bool
) -> DescribeUserScramCredentialsResult:
    result = partial(DescribeUserScramCredentialsResult, user=user)
    if repeated:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return result(error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=message)
    records = (call.cluster.image.scram.get((user, number)) for number in sorted(_BY_NUMBER))
    found = [record for record in records if record is not None]
    if not found:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        return result(error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=message)
    infos = tuple(CredentialInfo(mechanism=each.mechanism, iterations=each.iterations) for each in found)
    return result(error_message=None, credential_infos=infos)


def _alter(call: ServerCall[AlterUserScramCredentialsRequest]) -> None:
    call.require_cluster(AclOperation.ALTER)
    request = call.request
    changes: dict[str, _Change | RequestRefusedError] = {}
    asked: list[_Change] = [*request.deletions, *request.upsertions]
    for change in asked:
        before = changes.get(change.name)
        if not isinstance(before, RequestRefusedError):
            changes[change.name] = _TWICE if before is not None else outcome_of(_checked, call, change)
    outcomes = {
        user: each if isinstance(each, RequestRefusedError) else outcome_of(_record, each)
        for user, each in changes.items()
    }
    call.cluster.commit(each for each in outcomes.values() if not isinstance(each, RequestRefusedError))
    call.respond(AlterUserScramCredentialsResponse(results=tuple(starmap(_result, outcomes.items()))))


def _result(user: str, outcome: MetadataRecord | RequestRefusedError) -> AlterUserScramCredentialsResult:
    if isinstance(outcome, RequestRefusedError):
        return AlterUserScramCredentialsResult(user=user, error_code=outcome.error, error_message=outcome.message)
    return AlterUserScramCredentialsResult(user=user, error_message=None)


def _checked(call: ServerCall[AlterUserScramCredentialsRequest], change: _Change) -> _Change:
    """Return a validated change. Raises ``RequestRefusedError``."""
    mechanism = _BY_NUMBER.get(change.mechanism)  # type: ignore[call-overload]
    if not change.name:
        raise RequestRefusedError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism is None:
        raise RequestRefusedError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if (change.name, change.mechanism) not in call.cluster.image.scram:
            message = "Attempt to delete a user credential that does not exist"
            raise RequestRefusedError(ErrorCode.RESOURCE_NOT_FOUND, message)
        return change
    if change.iterations < mechanism.min_iterations:
        raise RequestRefusedError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > _MAX_ITERATIONS:
        raise RequestRefusedError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return change


def _record(change: _Change) -> MetadataRecord:
    """Return the record of a change. Raises ``RequestRefusedError``."""
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    if not change.salted_password:  # Java has no HMAC with an empty key
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    stored_key, server_key = scram_keys(change.salted_password, _BY_NUMBER[ScramMechanism(change.mechanism)].hash_name)
    return copy_as(UserScramCredentialRecord, change, stored_key=stored_key, server_key=server_key)


HANDLERS: Final = (
    ApiHandler(DescribeUserScramCredentialsRequest, _describe),
    ApiHandler(AlterUserScramCredentialsRequest, _alter),
)
