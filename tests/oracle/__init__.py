"""The oracle: Apache Kafka's own message classes, asked whether bytes and values are right.

``driver`` talks to it, ``build`` makes it out of ``pom.xml`` and ``src/``. It needs a JDK (11 or newer) and Maven;
where they are missing, the tests that need it say so in the summary instead of passing.
"""

from tests.oracle.driver import Decoded, MessageInfo, Oracle, OracleReject, Rewritten

__all__ = ["Decoded", "MessageInfo", "Oracle", "OracleReject", "Rewritten"]
