"""Kafka's own group coordinator in one Java process, without a broker, sockets or a clock of its own.

``driver`` talks to it. The Java sources wire the real ``GroupCoordinatorService`` to an in-memory log, a metadata image
from commands and a virtual clock. Ids that a broker draws at random are counted instead; ids of topics are the start
of SHA-256 of their names. ``CoordinatorOracle.java`` lists the commands. It needs a JDK (17 or newer) and Maven.
"""

from tests.coordinator.oracle.driver import AssignorOracle, Command, CoordinatorOracle, Result
from tests.support.maven import OracleUnavailableError

__all__ = ["AssignorOracle", "Command", "CoordinatorOracle", "OracleUnavailableError", "Result"]
