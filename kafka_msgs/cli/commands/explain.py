"""``kafka-msgs explain``: a message, a frame, record batches or a segment as one page for a browser."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.argument_data import read_binary
from kafka_msgs.cli.definition_options import current_catalog, definitions_options, user_messages
from kafka_msgs.cli.message_names import find_messages
from kafka_msgs.cli.page_files import new_page
from kafka_msgs.cli.registry_options import payload_schemas, registry_option
from kafka_msgs.cli.render.output import echo
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.message import Message
from kafka_msgs.wire import decode_request, decode_response, read_request_prefix

if TYPE_CHECKING:
    from kafka_msgs.catalog import MessageCatalog

__all__ = ["explain_command"]

_MESSAGE: Final = re.compile(r"(?P<name>[\w.-]+)/(?P<version>\d+)", re.ASCII)


def _message(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[type[Message], int] | None:
    """Parse a message and its version, such as ``MetadataResponse/12`` or, for a response, ``Metadata/12``."""
    if value is None:
        return None
    match = _MESSAGE.fullmatch(value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not NAME/VERSION, such as MetadataResponse/12", ctx, param)
    try:
        classes = find_messages(match["name"], user_messages(ctx))
    except LookupError as error:
        raise click.BadParameter(error.args[0], ctx, param) from None
    kind = "response" if param.name == "response_to" else None
    found = [cls for cls in classes if kind in (None, cls.INFO.kind)]
    if not found:
        raise click.BadParameter(f"{match['name']} has no {kind}", ctx, param)
    return found[0], int(match["version"])


@click.command("explain")
@click.argument("data", default="-")
@click.option("--html", "page", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Page to write.")
@click.option(
    "--as", "message", metavar="MESSAGE/VERSION", callback=_message, help="DATA is a message without a header."
)
@click.option(
    "--response-to",
    "response_to",
    metavar="API/VERSION",
    callback=_message,
    help="DATA is the response to a request of this API and version, with its header.",
)
@click.option("--records", is_flag=True, help="DATA are record batches, such as a segment of a log.")
@click.option("--topic", help="Topic of the records; the records of internal topics are opened.")
@registry_option
@definitions_options
def explain_command(
    data: str,
    page: Path,
    message: tuple[type[Message], int] | None,
    response_to: tuple[type[Message], int] | None,
    records: bool,
    topic: str | None,
    registry: str | None,
) -> None:
    """Write a page that shows each field of DATA next to its bytes.

    DATA is by default a request with its header. It is hexadecimal text, - for hexadecimal text on standard input, or
    @FILE for the bytes of a file. The page is one HTML file, which loads nothing.

    Example: kafka-msgs explain @00000000000000000000.log --records --html segment.html
    """
    if sum((message is not None, response_to is not None, records)) > 1:
        raise click.UsageError("--as, --response-to and --records exclude each other")
    if topic is not None and not records:
        raise click.UsageError("--topic needs --records")
    write = _writer(read_binary(data), message, response_to, _name(data) if records else None, topic or "")
    schemas = payload_schemas(registry)
    with new_page(page) as file:
        write(file=file, schemas=schemas)
    echo(f"{page}: written", err=True)


def _name(data: str) -> str:
    return Path(data[1:]).name if data.startswith("@") else "records"


def _writer(
    data: bytes,
    message: tuple[type[Message], int] | None,
    response_to: tuple[type[Message], int] | None,
    records: str | None,
    topic: str,
) -> Any:
    from kafka_msgs.viewer import explain_message, explain_payload, explain_records

    catalog = current_catalog()
    if records is not None:
        return partial(explain_records, data, name=records, topic=topic)
    if message is not None:
        return partial(explain_message, *message, data)
    if response_to is not None:
        cls, version = _response_version(data, *response_to, catalog)
    else:
        api_key, version, _ = read_request_prefix(data)
        cls = catalog.message_class(api_key, "request", version)
    return partial(explain_payload, cls, version, data, records=_records(data, cls, version, catalog))


def _response_version(
    data: bytes, cls: type[Message], version: int, catalog: MessageCatalog
) -> tuple[type[Message], int]:
    """Return the version of a response, which is 0 if the broker does not support the version of ApiVersions."""
    assert cls.INFO.api_key is not None
    try:
        return cls, decode_response(data, cls.INFO.api_key, version, catalog=catalog).version
    except KafkaMsgsError:
        return cls, version


def _records(data: bytes, cls: type[Message], version: int, catalog: MessageCatalog) -> list[Any]:
    """Return the contents of the records fields, or none if the payload is damaged: the page shows the damage."""
    from kafka_msgs.viewer.rows import RowBuilder

    try:
        decoded: Message
        if cls.INFO.kind == "request":
            decoded = decode_request(data, catalog=catalog).message
        else:
            assert cls.INFO.api_key is not None
            decoded = decode_response(data, cls.INFO.api_key, version, catalog=catalog).message
    except KafkaMsgsError:
        return []
    return RowBuilder().records_of(decoded)
