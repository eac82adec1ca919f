"""Classes whose structs are nested many levels deep."""

from __future__ import annotations

from typing import Any

from kafka_msgs.schema import field
from tests.support.codecs import message_class, struct_class


def nested(levels: int, type_: str, **facts: Any) -> type[Any]:
    """Return a message whose structs are nested this many levels deep, including itself."""
    cls = struct_class(f"Level{levels}", leaf=field("Leaf", "int8", default=0))
    default: Any = () if type_.startswith("[]") else None
    for level in range(levels - 1, 1, -1):
        below = field("Below", type_ + cls.__name__, default=default, struct=cls, **facts)
        cls = struct_class(f"Level{level}", leaf=field("Leaf", "int8", default=0), below=below)
    below = field("Below", type_ + cls.__name__, default=default, struct=cls, **facts)
    return message_class("Nested", flexible="0+", leaf=field("Leaf", "int8", default=0), below=below)


SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "arrays": ("[]", {}),
    "tagged arrays": ("[]", {"tag": 0, "tagged": "0+"}),
    "nullable structs": ("", {"nullable": "0+"}),
    "tagged nullable structs": ("", {"nullable": "0+", "tag": 0, "tagged": "0+"}),
}
