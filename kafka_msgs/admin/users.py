"""SCRAM credentials of users (KIP-554), and delegation tokens (KIP-48)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Sequence

from attrs import field, frozen

from kafka_msgs.admin.results import Results, api_name, no_value, outcomes, raise_top_level
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.enums import ScramMechanism
from kafka_msgs.messages import alter_user_scram_credentials_request as alter
from kafka_msgs.messages import create_delegation_token_request as create
from kafka_msgs.messages import describe_delegation_token_request as describe_token
from kafka_msgs.messages import describe_user_scram_credentials_request as describe
from kafka_msgs.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kafka_msgs.messages.describe_delegation_token_response import DescribedDelegationToken
from kafka_msgs.messages.describe_user_scram_credentials_response import CredentialInfo
from kafka_msgs.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kafka_msgs.messages.renew_delegation_token_request import RenewDelegationTokenRequest

__all__ = [
    "ScramDeletion",
    "ScramUpsertion",
    "alter_user_scram_credentials",
    "create_delegation_token",
    "describe_delegation_tokens",
    "describe_user_scram_credentials",
    "expire_delegation_token",
    "renew_delegation_token",
]

_DIGESTS = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}
_LEAST_ITERATIONS = 4096
_SALT_BYTES = 24

Principal = tuple[str, str]
"""The type and the name of a principal, such as ``("User", "alice")``."""


def _salt() -> bytes:
    return secrets.token_bytes(_SALT_BYTES)


@frozen
class ScramUpsertion:
    """A SCRAM credential of a user to create or replace.

    Only the salted password goes to the broker. ``repr`` omits ``password`` and ``salt``.
    """

    user: str
    mechanism: ScramMechanism
    password: str = field(repr=False)
    iterations: int = _LEAST_ITERATIONS
    salt: bytes = field(factory=_salt, repr=False)

    def _in_request(self) -> alter.ScramCredentialUpsertion:
        salted = hashlib.pbkdf2_hmac(_DIGESTS[self.mechanism], self.password.encode(), self.salt, self.iterations)
        return alter.ScramCredentialUpsertion(
            name=self.user,
            mechanism=self.mechanism,
            iterations=self.iterations,
            salt=self.salt,
            salted_password=salted,
        )


@frozen
class ScramDeletion:
    """A SCRAM credential of a user to delete."""

    user: str
    mechanism: ScramMechanism


def describe_user_scram_credentials(
    client: ClientCore, users: Collection[str] | None = None, *, timeout: float | None = None
) -> Flow[Results[str, tuple[CredentialInfo, ...]]]:
    """Return the SCRAM credentials of users, or of all users: mechanism and iterations, never the password."""
    request = describe.DescribeUserScramCredentialsRequest(
        users=None if users is None else tuple(describe.UserName(name=each) for each in users)
    )
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    items = ((each.user, each) for each in response.results)
    return outcomes(api_name(request), items, lambda each: each.credential_infos, users or ())


def alter_user_scram_credentials(
    client: ClientCore, changes: Sequence[ScramUpsertion | ScramDeletion], *, timeout: float | None = None
) -> Flow[Results[str, None]]:
    """Create, replace and delete SCRAM credentials. All changes of a user succeed or fail together."""
    request = alter.AlterUserScramCredentialsRequest(
        deletions=tuple(
            alter.ScramCredentialDeletion(name=each.user, mechanism=each.mechanism)
            for each in changes
            if isinstance(each, ScramDeletion)
        ),
        upsertions=tuple(each._in_request() for each in changes if isinstance(each, ScramUpsertion)),
    )
    response = yield from client.call(request, deadline=client.deadline(timeout))
    items = ((each.user, each) for each in response.results)
    return outcomes(api_name(request), items, no_value, [each.user for each in changes])


def create_delegation_token(
    client: ClientCore,
    *,
    owner: Principal | None = None,
    renewers: Collection[Principal] = (),
    max_lifetime_ms: int = -1,
    timeout: float | None = None,
) -> Flow[CreateDelegationTokenResponse]:
    """Create a delegation token (KIP-48) for this user, or for another owner (KIP-373).

    A ``max_lifetime_ms`` of -1 is the broker's lifetime. The response has the token's id and its secret, ``hmac``.
    """
    kind, name = owner or (None, None)
    request = create.CreateDelegationTokenRequest(
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=tuple(create.CreatableRenewers(principal_type=k, principal_name=n) for k, n in renewers),
        max_lifetime_ms=max_lifetime_ms,
    )
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return response


def renew_delegation_token(
    client: ClientCore, hmac: bytes, *, renew_period_ms: int = -1, timeout: float | None = None
) -> Flow[int]:
    """Renew a token; return its new expiry time in ms since 1970. -1 is the broker's period."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_period_ms)
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return response.expiry_timestamp_ms


def expire_delegation_token(
    client: ClientCore, hmac: bytes, *, expiry_period_ms: int = -1, timeout: float | None = None
) -> Flow[int]:
    """Expire a token after a period in ms, or immediately with -1. Return its expiry time in ms since 1970."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=expiry_period_ms)
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return response.expiry_timestamp_ms


def describe_delegation_tokens(
    client: ClientCore, owners: Collection[Principal] | None = None, *, timeout: float | None = None
) -> Flow[tuple[DescribedDelegationToken, ...]]:
    """Return the tokens of owners, or all tokens that the client may see, with their secrets."""
    request = describe_token.DescribeDelegationTokenRequest(
        owners=None
        if owners is None
        else tuple(describe_token.DescribeDelegationTokenOwner(principal_type=k, principal_name=n) for k, n in owners)
    )
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return response.tokens
