"""``kafka-msgs redact``: copy a recording without its secrets to a new recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

import click

from kafka_msgs.capture.faults import CaptureFault
from kafka_msgs.capture.recording import is_recording, read_recording, recording_pieces, recording_start
from kafka_msgs.cli.recording_options import new_file, redact_option
from kafka_msgs.cli.render.output import echo
from kafka_msgs.redaction import RedactKind, Redactor

__all__ = ["redact_command"]


@click.command("redact")
@click.argument("recording", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("new", type=click.Path(dir_okay=False, path_type=Path))
@redact_option
def redact_command(recording: Path, new: Path, kinds: frozenset[RedactKind]) -> None:
    """Copy RECORDING to NEW with sensitive text replaced by text of the same length.

    RECORDING is a recording of kafka-msgs tap, and NEW a file that does not exist yet. Passwords and tokens are
    always replaced. Decoded messages are omitted; kafka-msgs capture decodes the bytes of NEW.

    Example: kafka-msgs redact traffic.jsonl shared.jsonl --redact payloads --redact hosts
    """
    hidden = kinds | {RedactKind.SASL}
    redaction = Redactor(hidden)
    with recording.open("rb") as file:
        if not is_recording(file):
            raise click.ClickException(f"{recording}: not a recording of kafka-msgs tap")
        facts = _facts(file, hidden)
        exchanges = faults = 0
        with new_file(new) as written:
            written.write(recording_start(facts).encode("ascii") + b"\n")
            for item in read_recording(file):
                written.writelines(recording_pieces(redaction.redact(item)))
                exchanges += not isinstance(item, CaptureFault)
                faults += isinstance(item, CaptureFault)
    echo(f"{exchanges} exchanges, {faults} faults", err=True)


def _facts(file: BinaryIO, hidden: frozenset[RedactKind]) -> dict[str, Any]:
    """Read the first line of a recording, and return the contents of the new recording's first line."""
    try:
        facts: dict[str, Any] = json.loads(file.readline())
        earlier = {str(kind) for kind in facts.pop("redacted", ())}
    except (ValueError, TypeError):
        raise click.ClickException(f"{file.name}: the first line is damaged") from None
    if RedactKind.HOSTS in hidden:
        facts.pop("bootstrap", None)
    return {**facts, "redacted": sorted(earlier | {kind.value for kind in hidden})}
