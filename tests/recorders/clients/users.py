"""librdkafka user administration for the recording; the recorder runs it in an environment with confluent-kafka.

``users.py HOST:PORT`` sets a user's password, describes the user, and deletes the password.
"""

from __future__ import annotations

import sys

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

USER = "cashier"
MECHANISM = ScramMechanism.SCRAM_SHA_256
ITERATIONS = 4096
WAIT_SECONDS = 20


def alter(admin: AdminClient, alteration: UserScramCredentialUpsertion | UserScramCredentialDeletion) -> None:
    for altered in admin.alter_user_scram_credentials([alteration]).values():
        altered.result(WAIT_SECONDS)


def main(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "shop-floor"})
    information = ScramCredentialInfo(MECHANISM, ITERATIONS)
    alter(admin, UserScramCredentialUpsertion(USER, information, b"not a secret", b"salt of a recording"))
    admin.describe_user_scram_credentials([USER])[USER].result(WAIT_SECONDS)
    alter(admin, UserScramCredentialDeletion(USER, MECHANISM))


if __name__ == "__main__":
    main(sys.argv[1])
