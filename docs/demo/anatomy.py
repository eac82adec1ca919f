"""Section: the meaning of every byte of a response, and the error for invalid bytes."""

from __future__ import annotations

from docs.demo.presenter import Stage, narrow

__all__ = ["show"]


def show(stage: Stage) -> None:
    """Annotate one response, then truncate it."""
    stage.section(
        "Look at every byte",
        "One response, header and message: who coordinates the group of the Java consumer.",
    )
    stage.run(
        """
        from kafka_msgs import FindCoordinatorResponse, ResponseHeader
        from kafka_msgs.cli.render.hex_dump import annotate, dump_table
        answers = [pair.response.payload for pair in pairs if (pair.api_key, pair.api_version) == (10, 6)]
        found = answers[1]  # The first one says that there is no coordinator yet.
        header = annotate(ResponseHeader, 1, found)
        dump = dump_table(found, [header, annotate(FindCoordinatorResponse, 6, found, header.end)])
        """
    )
    stage.table(narrow(stage.names["dump"]))
    stage.say("Damaged bytes end in an error that names the message, the field and the place:")
    stage.refused("FindCoordinatorResponse.read(found[:-8], version=6, offset=5)")
