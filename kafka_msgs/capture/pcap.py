"""Capture files in pcap and pcapng format, read packet by packet with bounded memory.

dpkt defines the layouts, and the numbers of blocks and link types. This module implements the iteration, the clocks of
pcapng interfaces, and the faults of a damaged file. It does not parse packets.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from struct import Struct, unpack_from
from typing import Any, BinaryIO, Final, NamedTuple

from kafka_msgs.capture.dpkt_import import import_dpkt
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.errors import CaptureError

__all__ = ["Packet", "open_capture", "read_packets"]

_MICROS: Final = 1_000_000
_MAX_PACKET: Final = 2**18
"""The maximum packet size in bytes that tcpdump and Wireshark write."""
_MAX_BLOCK: Final = 2**19
"""The maximum block size in bytes: twice the maximum packet size, because a block contains options."""
_MAX_INTERFACES: Final = 10_000
"""The maximum number of interfaces in a section. All of them are held in memory."""
_LAST_TIME: Final = 2**63 - 1
_MAGIC_SIZE: Final = 4
_BLOCK_START: Final = 8
_BLOCK_LEAST: Final = 12
_SIZE: Final = 4
_SECTION: Final = b"\n\r\r\n"


class Packet(NamedTuple):
    """A captured packet. ``data`` may be truncated.

    ``number`` counts from 1, as in Wireshark. ``at`` is in microseconds since the epoch, rounded down. ``link`` is the
    number of the link type.
    """

    number: int
    at: int
    link: int
    data: bytes


class _Interface(NamedTuple):
    link: int
    ticks: int
    """Clock ticks per second."""
    offset: int
    """The seconds to add to timestamps."""


class _DamagedBlock(Exception):  # noqa: N818 - it never leaves this file: the walk that it ends says what was wrong
    pass


def open_capture(path: str | Path) -> BinaryIO:
    """Open a capture file. Raises ``OSError``, and ``CaptureError`` for a path that is not a regular file.

    A FIFO is refused, because opening and reading it could block forever.
    """
    file = open(path, "rb", opener=_open_without_waiting)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise CaptureError(file=str(path), packet=None, reason="not a regular file")
    return file


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_packets(file: BinaryIO) -> Iterator[Packet | CaptureFault]:
    """Yield the packets of a capture in file order, and a fault for everything else.

    The first bytes determine the format. A damaged file ends in a fault that counts the unread bytes. ``file`` must be
    seekable. Raises ``MissingExtraError`` without the extra ``capture``, and ``OSError``.
    """
    magic = file.read(_MAGIC_SIZE)
    file.seek(-len(magic), 1)
    reader: _Pcap | _Pcapng = _Pcapng(file) if magic == _SECTION else _Pcap(file)
    start = file.tell()
    try:
        for item in reader.packets():
            start = file.tell()
            yield item
    except _DamagedBlock as damage:
        left = file.seek(0, 2) - start
        reason = f"at byte {start}: {damage}, {left} bytes are left"
        yield CaptureFault(kind=FaultKind.FILE, reason=reason, size=left)


def _exactly(file: BinaryIO, size: int, what: str) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise _DamagedBlock(f"{what} ends after {len(data)} of {size} bytes")
    return data


class _Pcap:
    """The classic format: a header, then packets of one link type."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._dpkt = import_dpkt("pcap")

    def packets(self) -> Iterator[Packet]:
        pcap = self._dpkt
        data = _exactly(self._file, pcap.FileHdr.__hdr_len__, "the header of the file")
        layout: Any = pcap.MAGIC_TO_PKT_HDR.get(pcap.FileHdr(data).magic)
        if layout is None:
            raise _DamagedBlock("not a capture, neither pcap nor pcapng")
        little = layout.__hdr_fmt__.startswith("<")
        header = (pcap.LEFileHdr if little else pcap.FileHdr)(data)
        ticks = _MICROS * 1000 if header.magic == pcap.TCPDUMP_MAGIC_NANO else _MICROS
        number = 0
        while start := self._file.read(layout.__hdr_len__):
            if len(start) < layout.__hdr_len__:
                raise _DamagedBlock("a header of a packet that is cut off")
            fields, number = layout(start), number + 1
            if fields.caplen > _MAX_PACKET:
                raise _DamagedBlock(f"a packet of {fields.caplen} bytes, at most {_MAX_PACKET} are possible")
            content = _exactly(self._file, fields.caplen, "a packet")
            at = fields.tv_sec * _MICROS + fields.tv_usec * _MICROS // ticks
            yield Packet(number, at, header.linktype & 0xFFFF, content)


class _Pcapng:
    """The block format: sections of either byte order.

    Each section has interfaces with separate clocks and link types.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._dpkt = import_dpkt("pcapng")
        self._little = True
        self._interfaces: list[_Interface] = []
        self._number = 0

    def packets(self) -> Iterator[Packet | CaptureFault]:
        dpkt = self._dpkt
        readers = {
            dpkt.PCAPNG_BT_IDB: self._interface,
            dpkt.PCAPNG_BT_EPB: self._enhanced,
            dpkt.PCAPNG_BT_PB: self._old_packet,
            dpkt.PCAPNG_BT_SPB: self._timeless,
        }
        while start := self._file.read(_BLOCK_START):
            kind, block = self._block(start, readers)
            if kind in readers:
                item = readers[kind](block)
                if item is not None:
                    yield item

    def _block(self, start: bytes, kinds: Collection[int]) -> tuple[int, bytes]:
        if len(start) < _BLOCK_START:
            raise _DamagedBlock("a block that is cut off")
        if start.startswith(_SECTION):
            start += _exactly(self._file, _MAGIC_SIZE, "the header of a section")
            self._begin_section(start)
        kind, size = unpack_from(self._order("II"), start)
        if size % 4 or size < max(_BLOCK_LEAST, len(start) + _SIZE):
            raise _DamagedBlock(f"a block of {size} bytes")
        if kind not in kinds:
            block = self._passed_over(size - len(start))
        elif size > _MAX_BLOCK:
            raise _DamagedBlock(f"a block of {size} bytes, at most {_MAX_BLOCK} are possible")
        else:
            block = start + _exactly(self._file, size - len(start), "a block")
        if unpack_from(self._order("I"), block, len(block) - _SIZE) != (size,):
            raise _DamagedBlock(f"a block whose two sizes differ, the first is {size}")
        return kind, block

    def _passed_over(self, size: int) -> bytes:
        """Skip to the end of an irrelevant block of any size, and return its last four bytes."""
        self._file.seek(size - _SIZE, 1)
        return _exactly(self._file, _SIZE, "a block")

    def _begin_section(self, start: bytes) -> None:
        (mark,) = unpack_from("<I", start, _BLOCK_START)
        if mark not in (self._dpkt.BYTE_ORDER_MAGIC, self._dpkt.BYTE_ORDER_MAGIC_LE):
            raise _DamagedBlock("a section of unknown byte order")
        self._little = mark == self._dpkt.BYTE_ORDER_MAGIC
        self._interfaces = []

    def _order(self, layout: str) -> str:
        return ("<" if self._little else ">") + layout

    def _parsed(self, name: str, block: bytes) -> Any:
        """Return the fields before the content of a block. Options after them are not parsed."""
        fields: Any = getattr(self._dpkt, f"{name}LE" if self._little else name)()
        if len(block) < fields.__hdr_len__:
            raise _DamagedBlock(f"a block of {len(block)} bytes, too small for its kind")
        fields.unpack_hdr(block)
        return fields

    def _interface(self, block: bytes) -> None:
        fields = self._parsed("InterfaceDescriptionBlock", block)
        if len(self._interfaces) == _MAX_INTERFACES:
            raise _DamagedBlock(f"more than {_MAX_INTERFACES} interfaces in a section")
        options = dict(self._options(block[fields.__hdr_len__ - 4 : -4]))
        resolution = options.get(self._dpkt.PCAPNG_OPT_IF_TSRESOL, b"\x06")[:1] or b"\x06"
        base = 2 if resolution[0] & 0x80 else 10
        shift = options.get(self._dpkt.PCAPNG_OPT_IF_TSOFFSET, b"")
        offset = Struct(self._order("q")).unpack(shift)[0] if len(shift) == 8 else 0
        self._interfaces.append(_Interface(fields.linktype, base ** (resolution[0] & 0x7F), offset))

    def _options(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at + 4 <= len(data):
            code, size = unpack_from(self._order("HH"), data, at)
            if code == self._dpkt.PCAPNG_OPT_ENDOFOPT:
                return
            yield code, data[at + 4 : at + 4 + size]
            at += 4 + (size + 3) // 4 * 4

    def _enhanced(self, block: bytes) -> Packet | CaptureFault:
        return self._packet(self._parsed("EnhancedPacketBlock", block), block)

    def _old_packet(self, block: bytes) -> Packet | CaptureFault:
        return self._packet(self._parsed("PacketBlock", block), block)

    def _packet(self, fields: Any, block: bytes) -> Packet | CaptureFault:
        self._number += 1
        start = fields.__hdr_len__ - 4
        if fields.caplen > len(block) - 4 - start:
            raise _DamagedBlock(f"a packet of {fields.caplen} bytes in a block of {len(block)}")
        if fields.iface_id >= len(self._interfaces):
            raise _DamagedBlock(f"a packet of interface {fields.iface_id}, {len(self._interfaces)} are described")
        interface = self._interfaces[fields.iface_id]
        ticks = fields.ts_high << 32 | fields.ts_low
        at = interface.offset * _MICROS + ticks * _MICROS // interface.ticks
        if not 0 <= at <= _LAST_TIME:
            reason = f"a packet at {at} microseconds"
            return CaptureFault(kind=FaultKind.PACKET, reason=reason, size=fields.caplen, packet=self._number)
        return Packet(self._number, at, interface.link, block[start : start + fields.caplen])

    def _timeless(self, block: bytes) -> CaptureFault:
        """Return a fault for a simple packet block, which is unusable because it has no timestamp."""
        self._number += 1
        reason = "a packet without a time (a simple packet block)"
        return CaptureFault(kind=FaultKind.PACKET, reason=reason, size=len(block), packet=self._number)
