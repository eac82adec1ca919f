"""A broker that responds from memory: each API has one response, in which only the correlation id differs.

It runs in a separate process, so its CPU time is not counted for the client. ``python -m benchmarks.canned_broker``
prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import message_class
from kafka_msgs.message import Response
from kafka_msgs.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kafka_msgs.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_msgs.wire import encode_response, join_frames, read_frame_size, read_request_prefix

__all__ = ["HOST", "PARTITIONS", "canned_broker"]

HOST: Final = "127.0.0.1"
PARTITIONS: Final = 1224
"""The number of partitions in Metadata responses: about 39 KB at version 5."""

_OFFERED: Final = {
    ApiKey.PRODUCE: (0, 11), ApiKey.FETCH: (0, 12), ApiKey.LIST_OFFSETS: (0, 7), ApiKey.METADATA: (0, 12),
    ApiKey.FIND_COORDINATOR: (0, 4), ApiKey.API_VERSIONS: (0, 3),
}  # fmt: skip


def _versions() -> ApiVersionsResponse:
    """Return a response of realistic size: sixty APIs."""
    offered = dict(_OFFERED)
    for key in ApiKey:
        versions = message_class(key, "request").INFO.versions
        offered.setdefault(key, (versions.lowest, versions.highest))
    chosen = sorted(offered.items())[:60]
    return ApiVersionsResponse(
        api_keys=tuple(ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in chosen)
    )


def _metadata(port: int) -> MetadataResponse:
    topics = tuple(
        MetadataResponseTopic(
            name=f"topic-{number}",
            partitions=tuple(
                MetadataResponsePartition(partition_index=each, leader_id=1, replica_nodes=(1,), isr_nodes=(1,))
                for each in range(12)
            ),
        )
        for number in range(PARTITIONS // 12)
    )
    broker = MetadataResponseBroker(node_id=1, host=HOST, port=port)
    return MetadataResponse(brokers=(broker,), cluster_id="canned", controller_id=1, topics=topics)


class _Canned(asyncio.Protocol):
    """A connection that receives whole requests and sends whole responses."""

    def __init__(self, answers: dict[tuple[int, int], bytes], port: int) -> None:
        self._answers = answers
        self._port = port
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        start, out = 0, []
        while len(data) - start >= 4 and len(data) - start - 4 >= (size := read_frame_size(data, start)):
            key, version, number = read_request_prefix(data[start + 4 : start + 12])
            payload = self._answers.get((key, version)) or self._make(key, version)
            out += [payload[:4], number.to_bytes(4, "big"), payload[8:]]
            start += 4 + size
        self._rest = data[start:]
        self._transport.write(b"".join(out))

    def _make(self, key: int, version: int) -> bytes:
        answer: Response = _versions() if key == ApiKey.API_VERSIONS else _metadata(self._port)
        made = self._answers[key, version] = join_frames(encode_response(answer, version, correlation_id=0))
        return made


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    answers: dict[tuple[int, int], bytes] = {}
    port = 0
    server = await loop.create_server(lambda: _Canned(answers, port), HOST, 0)
    port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


@contextmanager
def canned_broker() -> Iterator[int]:
    """Run the broker in a process; yield its port."""
    command = [sys.executable, "-m", "benchmarks.canned_broker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


if __name__ == "__main__":
    asyncio.run(_serve())
