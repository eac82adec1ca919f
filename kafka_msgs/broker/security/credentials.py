"""User passwords: PLAIN passwords from the configuration, SCRAM credentials from the metadata records (KIP-554)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hmac import compare_digest
from typing import Final, NamedTuple

from kafka_msgs.broker.cluster_services import ClusterServices
from kafka_msgs.enums import ScramMechanism
from kafka_msgs.messages.user_scram_credential_record import UserScramCredentialRecord

__all__ = ["MECHANISMS", "OAUTHBEARER", "PLAIN", "CredentialStore", "scram_keys"]

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"


class ScramMechanismInfo(NamedTuple):
    """A SCRAM mechanism: its number in records, its hash function, and its minimum number of iterations."""

    number: ScramMechanism
    hash_name: str
    min_iterations: int = 4096


MECHANISMS: Final[Mapping[str, ScramMechanismInfo]] = {
    "SCRAM-SHA-256": ScramMechanismInfo(ScramMechanism.SCRAM_SHA_256, "sha256"),
    "SCRAM-SHA-512": ScramMechanismInfo(ScramMechanism.SCRAM_SHA_512, "sha512"),
}
"""The SCRAM mechanisms by name."""

_SALT_BYTES: Final = 16


def scram_keys(salted_password: bytes, hash_name: str) -> tuple[bytes, bytes]:
    """Return the stored key and the server key of a salted password (RFC 5802)."""
    import hashlib
    import hmac

    client_key = hmac.digest(salted_password, b"Client Key", hash_name)
    server_key = hmac.digest(salted_password, b"Server Key", hash_name)
    return hashlib.new(hash_name, client_key).digest(), server_key


class CredentialStore:
    """The passwords of the users of a cluster."""

    def __init__(self, cluster: ClusterServices) -> None:
        self._cluster = cluster

    def accepts(self, user: str, password: str) -> bool:
        """Return whether the password of a user is correct, for PLAIN. All wrong passwords take the same time."""
        known = self._cluster.config.users.get(user)
        return compare_digest((known or "").encode(), password.encode()) and known is not None

    def scram(self, user: str, mechanism: str) -> UserScramCredentialRecord | None:
        """Return a user's credential for a SCRAM mechanism, or None."""
        return self._cluster.image.scram.get((user, MECHANISMS[mechanism].number))

    def records(self) -> Iterator[UserScramCredentialRecord]:
        """Yield the records of the configured users."""
        from hashlib import pbkdf2_hmac

        for user, password in self._cluster.config.users.items():
            for mechanism in MECHANISMS.values():
                salt = self._cluster.random.randbytes(_SALT_BYTES)
                salted = pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, mechanism.min_iterations)
                stored_key, server_key = scram_keys(salted, mechanism.hash_name)
                yield UserScramCredentialRecord(
                    name=user,
                    mechanism=mechanism.number,
                    salt=salt,
                    stored_key=stored_key,
                    server_key=server_key,
                    iterations=mechanism.min_iterations,
                )
