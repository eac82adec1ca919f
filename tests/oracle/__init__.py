"""The oracle: Apache Kafka's own message classes, used to verify bytes and values.

``driver`` communicates with it, ``build`` builds it from ``pom.xml`` and ``src/``. Requires a JDK (11 or newer) and
Maven; if they are missing, the tests that need it are reported in the summary instead of passing.
"""

from tests.oracle.driver import Decoded, MessageInfo, Oracle, OracleReject, Rewritten

__all__ = ["Decoded", "MessageInfo", "Oracle", "OracleReject", "Rewritten"]
