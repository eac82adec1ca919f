"""``kafka-msgs call``: send any request to the broker that can handle it, as JSON, and print the response."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from kafka_msgs.cli.argument_data import read_text
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.message_names import complete_names, find_messages
from kafka_msgs.cli.render.console import print_json
from kafka_msgs.errors import JsonFormError
from kafka_msgs.message import Request

if TYPE_CHECKING:
    from kafka_msgs.cli.frame_recorder import RecordingNetwork
    from kafka_msgs.client.core import ClientCore
    from kafka_msgs.client.flow import Flow
    from kafka_msgs.versions import VersionRange

__all__ = ["call_command"]

AnyRequest = Request[Any]


def _request(ctx: click.Context, param: click.Parameter, value: str) -> type[AnyRequest]:
    try:
        classes = find_messages(value)
    except LookupError as error:
        raise click.BadParameter(error.args[0], ctx, param) from None
    for cls in classes:
        if issubclass(cls, Request):
            return cls
    raise click.BadParameter(f"{classes[0].INFO.name} is not a request", ctx, param)


@click.command("call")
@click.argument("request", metavar="API", callback=_request, shell_complete=complete_names)
@click.argument("text", metavar="[JSON]", default="{}")
@broker_options()
@click.option(
    "--version", type=int, help="API version; by default the highest common version with all fields of the JSON."
)
@click.option("--node", metavar="ID", type=int, help="Id of the broker; by default the one that serves the API.")
@click.option("--explain", is_flag=True, help="Print the meaning of each byte of the request and the response.")
def call_command(
    request: type[AnyRequest],
    text: str,
    cluster: ClusterOptions,
    version: int | None,
    node: int | None,
    explain: bool,
) -> None:
    """Send a request of API, such as OffsetFetch or 9, and print the response as JSON.

    JSON is the request in the format of Kafka's own tools, - for standard input, or @FILE for a file. Omitted
    fields have their defaults. The request goes to the coordinator, the controller, the leaders or any broker,
    depending on the API; requests about partitions of several brokers are split, and the responses merged. Error
    codes are part of the response and do not change the exit status.

    Example: kafka-msgs call OffsetFetch '{"groups": [{"groupId": "billing", "topics": null}]}' -b localhost
    """
    output_format = _form(text)
    from kafka_msgs.cli.frame_recorder import RecordingNetwork
    from kafka_msgs.client.core import ClientCore

    network = RecordingNetwork()
    core = ClientCore(cluster.config, network)
    try:
        exchange = network.run(_call(core, request, output_format, version, node))
        if not explain:
            _print_response(*exchange)
    finally:
        core.close()
        network.close()
        if explain:
            _explain(network, request)


def _form(text: str) -> Any:
    try:
        return json.loads(read_text(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise click.ClickException(f"not JSON: {error}") from None


def _call(
    core: ClientCore, cls: type[AnyRequest], output_format: Any, version: int | None, node: int | None
) -> Flow[tuple[Any, int]]:
    """Return the response, and its version."""
    deadline = core.deadline(None)
    if version is None:
        if node is None:
            link = yield from core.directory.any_connection(deadline=deadline)
        else:
            link = yield from core.link(node, deadline=deadline)
        link.highest_version(cls)  # Raises the error that names the versions of both, if they have none in common.
        message, version = _fitting(cls, output_format, link.version_range(cls))
    else:
        message = _message(cls, output_format, version)
    return (yield from core.call(message, deadline=deadline, version=version, broker_id=node)), version


def _fitting(cls: type[AnyRequest], output_format: Any, versions: VersionRange) -> tuple[AnyRequest, int]:
    """Return the message at the highest version that has all fields of the form; raises the highest version's error."""
    refusal: JsonFormError | None = None
    for version in reversed([*versions]):
        try:
            return _message(cls, output_format, version), version
        except JsonFormError as error:
            refusal = refusal or error
    assert refusal is not None, "there is a version"
    raise refusal


def _message(cls: type[AnyRequest], output_format: Any, version: int) -> AnyRequest:
    from kafka_msgs.codec.json_form import from_json

    return from_json(cls, output_format, version, partial=True)


def _print_response(response: Any, version: int) -> None:
    from kafka_msgs.cli.render.nested_messages import readable_json

    print_json(readable_json(response, version))


def _explain(network: RecordingNetwork, request: type[AnyRequest]) -> None:
    from kafka_msgs.catalog import release_catalog
    from kafka_msgs.cli.frame_dump import request_annotations, response_annotations
    from kafka_msgs.cli.render.hex_dump import print_dump
    from kafka_msgs.wire import read_request_prefix

    catalog = release_catalog()
    for asked, answered in network.exchanges(request.INFO.api_key):
        prefix = read_request_prefix(asked)
        print_dump(asked, request_annotations(asked, catalog), as_json=False)
        if answered is not None:
            print_dump(answered, response_annotations(answered, prefix.api_key, prefix.version, catalog), as_json=False)
