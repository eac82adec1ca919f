"""Section: a definition becomes a class, and the class reads a recorded client request."""

from __future__ import annotations

import inspect

from docs.demo.presenter import Stage, columns

__all__ = ["show"]


def show(stage: Stage) -> None:
    """Compile the definition of a heartbeat; encode one at several versions; decode a recorded one."""
    stage.section(
        "Compile a definition",
        "Kafka defines each message once, for all versions; the compiler makes one typed class of it, here at run "
        "time.",
    )
    stage.text((stage.names["definitions"] / "clients" / "HeartbeatRequest.json").read_text(), "json")
    stage.run(
        """
        from kafka_msgs import compile_schema
        Heartbeat = compile_schema(definitions / "clients" / "HeartbeatRequest.json")
        """
    )
    stage.text(inspect.getsource(stage.names["Heartbeat"]), "python")
    _versions(stage)
    _recorded(stage)


def _versions(stage: Stage) -> None:
    stage.say("One value, three versions: version 3 adds a field, version 4 packs lengths and ends in a tag section.")
    stage.run(
        """
        beat = Heartbeat(group_id="tea", generation_id=7, member_id="m-1")
        encoded = {version: beat.encode(version) for version in (2, 3, 4)}
        assert all(Heartbeat.decode(data, version) == beat for version, data in encoded.items())
        """
    )
    rows = columns("version", "bytes", "hex", numbers=("version", "bytes"))
    for version, data in stage.names["encoded"].items():
        rows.add_row(str(version), str(len(data)), data.hex(" "))
    stage.table(rows)


def _recorded(stage: Stage) -> None:
    stage.say("The same class reads the request of a Java consumer, after the header that every request has.")
    stage.run(
        """
        from kafka_msgs import RequestHeader
        from docs.demo.recordings import read_exchanges
        pairs = list(read_exchanges(recordings / "client_traffic.jsonl"))
        sent = next(pair.request.payload for pair in pairs if (pair.api_key, pair.api_version) == (12, 4))
        header, start = RequestHeader.read(sent, version=2)
        beat, end = Heartbeat.read(sent, version=4, offset=start)
        """
    )
    stage.value(stage.names["header"])
    stage.value(stage.names["beat"])
