"""Masks: replacement texts and bytes of the same length, or for tokens of one length.

Equal texts get equal masks, so related values remain recognizable. A mask cannot be computed without the key, and the
key is discarded when the program ends. Short texts have few masks: two one-letter texts may get the same mask.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import lru_cache
from hashlib import shake_128
from typing import Final

__all__ = ["TOKEN_BYTES", "Masks"]

TOKEN_BYTES: Final = 32
"""The length of the mask of a password or a token, whatever its own length."""

_LETTERS: Final = bytes(range(ord("a"), ord("z") + 1))
_TO_LETTERS: Final = bytes(_LETTERS[value % len(_LETTERS)] for value in range(256))
_KEPT: Final = 10_000
_LONGEST_DIGESTED: Final = 2**12


class Masks:
    """A generator of masks with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._text: Callable[[str], str] = lru_cache(_KEPT)(self._masked)

    def text(self, text: str) -> str:
        """Return letters with the same UTF-8 length as ``text``."""
        return self._text(text) if len(text) < _LONGEST_DIGESTED else self._masked(text)

    def letters(self, data: bytes | memoryview) -> bytes:
        """Return as many letters as ``data`` has bytes. Longer masks repeat after 4,096 bytes."""
        size = len(data)
        seed = hmac.digest(self._key, data, "sha256")
        some = shake_128(seed).digest(min(size, _LONGEST_DIGESTED)).translate(_TO_LETTERS)
        return (some * (size // _LONGEST_DIGESTED + 1))[:size]

    def token(self, data: bytes | memoryview) -> bytes:
        """Return letters whose number does not depend on ``data``."""
        return shake_128(hmac.digest(self._key, data, "sha256")).digest(TOKEN_BYTES).translate(_TO_LETTERS)

    def token_text(self, text: str) -> str:
        """Return letters whose number does not depend on ``text``."""
        return self.token(text.encode("utf-8", "surrogateescape")).decode("ascii")

    def _masked(self, text: str) -> str:
        return self.letters(text.encode("utf-8", "surrogateescape")).decode("ascii")
