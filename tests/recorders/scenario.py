"""Sessions of Kafka's own command-line tools for the recording.

The story: a shop writes orders; ``billing`` reads them as a classic group, ``shipping`` under the consumer group
protocol, ``packing`` as a share group, and a Kafka Streams application counts items as the streams group ``totals``.
The tools describe some groups during their run and afterward; ``shipping`` is deleted in the end, so that the offsets
topic contains tombstones.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.recorders.broker import Broker, BrokerError, run_kafka_class
from tests.recorders.broker_configs import share_from_earliest
from tests.recorders.proxy import RecordingProxy
from tests.support.recorded_frames import REQUEST

__all__ = ["BILLING_GROUP", "SHIPPING_GROUP", "ShopTools"]

TOPIC = "orders"
BILLING_GROUP = "billing"
SHIPPING_GROUP = "shipping"
PACKING_GROUP = "packing"
TOTALS_GROUP = "totals"

_TOOLS = "org.apache.kafka.tools."
_GROUP_COMMAND = _TOOLS + "consumer.group.ConsumerGroupCommand"
_WAIT_SECONDS = 60

_APPLICATION = Path(__file__).parent / "clients" / "ItemTotals.java"

_PRODUCE = 0
_OFFSET_FETCH = 9

_ORDERS = "".join(
    f'trace:{number:04x},source:shop\torder-{number}\t{{"order":{number},"item":"{item}","quantity":{quantity}}}\n'
    for number, item, quantity in (
        (1001, "green tea", 2),
        (1002, "café crème", 1),
        (1003, "お茶", 5),
        (1004, "oolong", 1),
        (1005, "mint", 3),
        (1006, "cocoa", 2),
    )
)


class ShopTools:
    """Runs the tools against ``broker``, through ``proxy``."""

    def __init__(self, broker: Broker, proxy: RecordingProxy) -> None:
        self._broker = broker
        self._proxy = proxy

    def run(self) -> None:
        """Run every step, in order."""
        self._topics()
        self._produce()
        with self._member("consumer.ConsoleConsumer", BILLING_GROUP, "classic", until=_OFFSET_FETCH):
            self._describe(BILLING_GROUP)
        with self._member("consumer.ConsoleConsumer", SHIPPING_GROUP, "consumer", until=_OFFSET_FETCH):
            self._describe(SHIPPING_GROUP)
        self._describe(BILLING_GROUP)
        self._share()
        self._streams()
        self._tool("GroupsCommand", "--list")

    def clean_up(self) -> None:
        """Reset one group; delete another group's offsets and then the group."""
        group = ["--group", BILLING_GROUP, "--topic", TOPIC + ":1"]
        self._groups("--reset-offsets", "--to-earliest", "--execute", *group)
        self._groups("--delete-offsets", "--group", SHIPPING_GROUP, "--topic", TOPIC + ":0")
        self._groups("--delete", "--group", SHIPPING_GROUP)

    def _topics(self) -> None:
        self._tool("TopicCommand", "--create", "--topic", TOPIC, "--partitions", "2")
        self._tool("TopicCommand", "--describe", "--topic", TOPIC)

    def _produce(self) -> None:
        reader = ["--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"]
        self._tool("ConsoleProducer", "--topic", TOPIC, *reader, stdin=_ORDERS)

    @contextmanager
    def _member(self, tool: str, group: str, protocol: str, *, until: int) -> Iterator[None]:
        """Run a consumer that reads all orders and lingers. The block starts when it has sent a request of API
        ``until``.
        """
        properties = [f"group.protocol={protocol}", "auto.offset.reset=earliest", f"client.id={group}-console"]
        if protocol == "classic":
            properties.append("heartbeat.interval.ms=500")
        arguments = ["--topic", TOPIC, "--group", group, "--timeout-ms", "6000"]
        for each in properties:
            arguments += ["--command-property", each]
        since = len(self._proxy.frames)
        with ThreadPoolExecutor(1) as pool:
            member = pool.submit(self._tool, tool, *arguments)
            self._await_request(until, since, member)
            yield
            member.result()

    def _await_request(self, api_key: int, since: int, client: Future[str]) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while not any(
            frame.direction == REQUEST and frame.payload[:2] == api_key.to_bytes(2, "big")
            for frame in self._proxy.frames[since:]
        ):
            if client.done():
                client.result()
            if client.done() or time.monotonic() > deadline:
                raise BrokerError(f"no request with API key {api_key} was seen")
            time.sleep(0.05)

    def _describe(self, group: str) -> None:
        self._groups("--describe", "--group", group, "--members", "--verbose")
        self._groups("--describe", "--group", group, "--offsets")

    def _share(self) -> None:
        share_from_earliest(self._broker.bootstrap, PACKING_GROUP)
        arguments = ["--topic", TOPIC, "--group", PACKING_GROUP, "--timeout-ms", "6000"]
        self._tool("consumer.ConsoleShareConsumer", *arguments)

    def _streams(self) -> None:
        """Run the Streams application, which ends by itself, and describe its group meanwhile."""
        arguments = [self._proxy.bootstrap, TOTALS_GROUP, str(self._broker.home / "streams")]
        since = len(self._proxy.frames)
        with ThreadPoolExecutor(1) as pool:
            application = pool.submit(run_kafka_class, str(_APPLICATION), arguments)
            self._await_request(_PRODUCE, since, application)
            group = ["--describe", "--group", TOTALS_GROUP]
            self._tool("streams.StreamsGroupCommand", *group, "--members", "--verbose")
            application.result()

    def _groups(self, *arguments: str) -> str:
        return run_kafka_class(_GROUP_COMMAND, ["--bootstrap-server", self._proxy.bootstrap, *arguments])

    def _tool(self, name: str, *arguments: str, stdin: str = "") -> str:
        everything = ["--bootstrap-server", self._proxy.bootstrap, *arguments]
        return run_kafka_class(_TOOLS + name, everything, stdin=stdin)
