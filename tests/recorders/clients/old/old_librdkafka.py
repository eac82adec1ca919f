"""A session of an old librdkafka through its C interface, because its Python wheels are for old Pythons.

``old_librdkafka.py LIBRARY HOST:PORT CLIENT_ID VERSION`` produces, reads in a group, and commits. With a release of
Kafka as VERSION, which may be empty, the client uses the versions of that release without asking the broker.
"""

from __future__ import annotations

import ctypes
import sys
import time
from contextlib import suppress
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path

SECONDS = 20
PRODUCER, CONSUMER = 0, 1
COPY = 2
ANY_PARTITION = -1


class Message(Structure):
    _fields_ = (
        ("err", c_int),
        ("topic", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("size", c_size_t),
        ("key", c_void_p),
        ("key_size", c_size_t),
        ("offset", c_int64),
        ("opaque", c_void_p),
    )


DELIVERED = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Message), c_void_p)


def load(path: str) -> ctypes.CDLL:
    """Load the library, after the libraries next to it that it needs."""
    needed = [each for each in Path(path).parent.glob("lib*") if each != Path(path)]
    for _ in range(len(needed)):
        for each in needed:
            with suppress(OSError):
                ctypes.CDLL(str(each), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(path)
    for name in ("conf_new", "new", "topic_new", "topic_partition_list_new", "topic_partition_list_add"):
        getattr(library, f"rd_kafka_{name}").restype = c_void_p
    library.rd_kafka_consumer_poll.restype = POINTER(Message)
    return library


def new_client(library: ctypes.CDLL, kind: int, config: dict[str, str], delivered: object = None) -> c_void_p:
    text = ctypes.create_string_buffer(512)
    conf = c_void_p(library.rd_kafka_conf_new())
    for name, value in config.items():
        if library.rd_kafka_conf_set(conf, name.encode(), value.encode(), text, c_size_t(512)):
            raise SystemExit(text.value.decode())
    if delivered is not None:
        library.rd_kafka_conf_set_dr_msg_cb(conf, delivered)
    client = library.rd_kafka_new(kind, conf, text, c_size_t(512))
    if not client:
        raise SystemExit(text.value.decode())
    return c_void_p(client)


def produce(library: ctypes.CDLL, config: dict[str, str], topic: str) -> None:
    errors: list[int] = []
    delivered = DELIVERED(lambda client, message, opaque: errors.append(message.contents.err))
    client = new_client(library, PRODUCER, config, delivered)
    handle = c_void_p(library.rd_kafka_topic_new(client, c_char_p(topic.encode()), None))
    for number in range(3):
        value = b"order %d" % number
        args = (handle, c_int32(ANY_PARTITION), COPY, value, c_size_t(len(value)), None, c_size_t(0), None)
        library.rd_kafka_produce(*args)
    library.rd_kafka_flush(client, SECONDS * 1000)
    if errors != [0, 0, 0]:
        raise SystemExit(f"not delivered: {errors}")
    library.rd_kafka_topic_destroy(handle)
    library.rd_kafka_destroy(client)


def consume(library: ctypes.CDLL, config: dict[str, str], topic: str) -> None:
    client = new_client(library, CONSUMER, config)
    library.rd_kafka_poll_set_consumer(client)
    topics = c_void_p(library.rd_kafka_topic_partition_list_new(1))
    library.rd_kafka_topic_partition_list_add(topics, c_char_p(topic.encode()), c_int32(ANY_PARTITION))
    library.rd_kafka_subscribe(client, topics)
    deadline, found = time.monotonic() + SECONDS, 0
    while found < 3:
        message = library.rd_kafka_consumer_poll(client, 500)
        found += bool(message) and message.contents.err == 0
        if time.monotonic() > deadline:
            raise SystemExit("no records arrived")
    if library.rd_kafka_commit(client, None, 0):
        raise SystemExit("not committed")
    library.rd_kafka_consumer_close(client)


def main(path: str, bootstrap: str, client_id: str, version: str) -> None:
    library = load(path)
    common = {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "api.version.request": "false" if version else "true",
    }
    common |= {"broker.version.fallback": version} if version else {}
    produce(library, common, client_id)
    reading = {"group.id": client_id, "enable.auto.commit": "false", "auto.offset.reset": "earliest"}
    consume(library, {**common, **reading}, client_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
