"""Kafka's own group coordinator in one Java process, without a broker or sockets, and with a virtual clock.

``driver`` communicates with it. The Java sources connect the real ``GroupCoordinatorService`` to an in-memory log, a
metadata image built from commands, and a virtual clock. Counters replace the random ids of a broker; topic ids are the
first bytes of the SHA-256 of topic names. ``CoordinatorOracle.java`` lists the commands. The oracle requires a JDK (17
or newer) and Maven.
"""

from tests.coordinator.oracle.driver import AssignorOracle, Command, CoordinatorOracle, Result
from tests.support.maven import OracleUnavailableError

__all__ = ["AssignorOracle", "Command", "CoordinatorOracle", "OracleUnavailableError", "Result"]
