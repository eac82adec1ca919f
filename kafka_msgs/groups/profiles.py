"""What a coordinator does where the document and the release differ, and which bugs of the release it has.

There is one code for both. Each difference is a field of ``Profile``, and its docstring has both behaviours and the
reason. ``SHIPPED`` is Kafka 4.4.0, which real clients talk to. ``PAGE`` is the document (KIP-1071) as a superset. A
handler asks for a field, never for a profile. A bug of the release is a field of ``Quirks``.
"""

from __future__ import annotations

from typing import Final

from attrs import field, fields, frozen

__all__ = ["PAGE", "SHIPPED", "Profile", "Quirks"]


@frozen(kw_only=True)
class Profile:
    """The choices of a coordinator."""

    name: str
    """The name of the profile in documents and tests."""


SHIPPED: Final = Profile(name="shipped")
"""What Kafka 4.4.0 does."""

PAGE: Final = Profile(name="page")
"""What the document says."""


@frozen(kw_only=True)
class Quirks:
    """Bugs of Kafka 4.4.0. Each is off, except in a comparison with Kafka itself.

    ``of_release`` switches all on.
    """

    @classmethod
    def of_release(cls) -> Quirks:
        """Return all bugs of Kafka 4.4.0."""
        return cls(**{each.name: True for each in fields(cls)})


def quirk() -> bool:
    """A field of ``Quirks``: a bug that is off by default."""
    made: bool = field(default=False)
    return made
