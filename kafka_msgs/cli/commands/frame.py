"""``kafka-msgs frame``: decode a request or response frame, including the header."""

from __future__ import annotations

import re

import click

from kafka_msgs.cli.argument_data import read_binary
from kafka_msgs.cli.definition_options import current_catalog, definitions_options, user_messages
from kafka_msgs.cli.frame_dump import request_annotations, response_annotations
from kafka_msgs.cli.message_names import find_messages
from kafka_msgs.cli.render.console import console, print_json
from kafka_msgs.cli.render.hex_dump import print_dump
from kafka_msgs.cli.render.tree import message_tree
from kafka_msgs.wire import (
    SIZE_BYTES,
    RequestFrame,
    ResponseFrame,
    decode_request,
    decode_response,
    header_version,
    read_frame_size,
)

__all__ = ["frame_command"]

_REQUEST = re.compile(r"(?P<api>[\w.-]+)/(?P<version>\d+)", re.ASCII)


def _request(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Parse the api key and version of a request, written ``9/2`` or ``OffsetFetch/2``."""
    if value is None:
        return None
    match = _REQUEST.fullmatch(value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not API/VERSION, such as OffsetFetch/2 or 9/2", ctx, param)
    return _api_key(match["api"], ctx), int(match["version"])


def _api_key(api: str, ctx: click.Context) -> int:
    if api.isdigit():
        return int(api)
    try:
        classes = find_messages(api, user_messages(ctx))
        keys = [cls.INFO.api_key for cls in classes if cls.INFO.kind in ("request", "response")]
    except LookupError as error:
        raise click.BadParameter(error.args[0], param_hint="--response-to") from None
    if not keys or keys[0] is None:
        raise click.BadParameter(f"{api} is not a request", param_hint="--response-to")
    return keys[0]


@click.command("frame")
@click.argument("data", default="-")
@click.option(
    "--response-to",
    "request",
    metavar="API/VERSION",
    callback=_request,
    help="DATA is the response to a request with this API key or name, and version, such as OffsetFetch/2.",
)
@definitions_options
@click.option("--size-prefix", is_flag=True, help="DATA starts with the four-byte size of a frame.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the header and the message as JSON in the format of Kafka's own tools.",
)
@click.option("--explain", is_flag=True, help="Print the meaning of each byte, also of malformed data.")
def frame_command(data: str, request: tuple[int, int] | None, size_prefix: bool, as_json: bool, explain: bool) -> None:
    """Decode DATA, a request with its header, or with --response-to a response.

    The first four bytes of a request are its API key and version; for a response, --response-to specifies them. DATA is
    hexadecimal text, - for hexadecimal text on standard input, or @FILE for the bytes of a file.

    Example: kafka-msgs frame 0012000000000001ffff --explain
    """
    payload = _payload(read_binary(data), size_prefix)
    if explain:
        _explain(payload, request, as_json)
        return
    catalog = current_catalog()
    if request is None:
        frame: RequestFrame | ResponseFrame = decode_request(payload, catalog=catalog)
    else:
        frame = decode_response(payload, *request, catalog=catalog)
    head = header_version(type(frame.message), frame.version)
    if as_json:
        trailing = {"trailingBytes": frame.trailing.hex()} if frame.trailing else {}
        message = frame.message.to_json(frame.version)
        print_json({"header": frame.header.to_json(head), "message": message, **trailing})
        return
    out = console()
    out.print(message_tree(frame.header, head))
    out.print(message_tree(frame.message, frame.version))
    if frame.trailing:
        out.print(f"{len(frame.trailing)} bytes after the message: {frame.trailing.hex()}")


def _payload(frame: bytes, size_prefix: bool) -> bytes:
    if not size_prefix:
        return frame
    size = read_frame_size(frame.ljust(SIZE_BYTES, b"\0"))
    payload = frame[SIZE_BYTES:]
    if size != len(payload):
        raise click.ClickException(f"the frame states {size} bytes, but {len(payload)} follow")
    return payload


def _explain(payload: bytes, request: tuple[int, int] | None, as_json: bool) -> None:
    catalog = current_catalog()
    if request is None:
        annotations = request_annotations(payload, catalog)
    else:
        annotations = response_annotations(payload, *request, catalog)
    print_dump(payload, annotations, as_json)
    error = annotations[-1].error
    if error is not None:
        raise error
