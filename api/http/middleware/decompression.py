"""Takes compressed bodies apart, a little at a time, so that a small one cannot become a huge one unnoticed."""

import zlib
from collections.abc import Iterator
from typing import Protocol

import zstandard

#: What is fed at once. The densest gzip grows 1,032 times, so 4 KiB become 4 MiB; the densest zstd has blocks of
#: 128 KiB in 4 bytes, so 256 bytes become 8 MiB.
_FED_BYTES = {"gzip": 4096, "zstd": 256}
#: The memory that a sender may ask a decompressor for (RFC 8878 names this size).
_MAX_WINDOW_BYTES = 8 * 1024**2
_GZIP_WINDOW_BITS = 31
#: Parts cost time even where they are empty, which takes 9 bytes: they must be this long on average, but for a few.
_LEAST_PART_BYTES, _FEW_PARTS = 1024, 16

ENCODINGS = tuple(_FED_BYTES)


class RejectedBody(Exception):
    """A body that is read no further: the kind of the problem, and what happened."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


class Inflater:
    """Takes one body apart: one or more members of gzip, or frames of zstd, and nothing after them."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._broken = RejectedBody("broken-body", f"the body is no {encoding}, or a part of it is missing")
        self._part: _Decompressor | None = None  # None between two parts
        self._num_parts = self._num_fed_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what comes out of the next bytes, in pieces of a few mebibytes at most. Raises ``RejectedBody``."""
        step = _FED_BYTES[self._encoding]
        for start in range(0, len(data), step):
            left = data[start : start + step]
            self._num_fed_bytes += len(left)
            while left:
                if self._part is None:
                    self._part = self._new()
                    self._num_parts += 1
                    if self._num_parts > _FEW_PARTS + self._num_fed_bytes // _LEAST_PART_BYTES:
                        raise self._broken
                try:
                    piece = self._part.decompress(left)
                except (zlib.error, zstandard.ZstdError) as error:
                    raise self._broken from error
                left = b""
                if self._part.eof:
                    left, self._part = self._part.unused_data, None
                if piece:
                    yield piece

    def end(self) -> None:
        """Say that the body has ended. Raises ``RejectedBody`` if something is missing."""
        if self._part is not None or not self._num_parts:
            raise self._broken

    def _new(self) -> _Decompressor:
        if self._encoding == "gzip":
            return zlib.decompressobj(_GZIP_WINDOW_BITS)
        return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj()
