"""The channel between judge and candidate: frames of JSON over one socket, bounded, each side's bytes only ever data.

`json` itself costs ten milliseconds of imports (re, enum, functools); its C parts alone do the same work at once.
"""

from __future__ import annotations

import os

FRAME_BYTES = 16 * 1024 * 1024
_CHUNK = 1 << 16

try:
    from _json import encode_basestring as _encode_text
    from _json import make_encoder as _make_encoder
    from _json import make_scanner as _make_scanner

    class _Context:
        strict = False
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        memo: dict = {}

        @staticmethod
        def parse_constant(name: str) -> float:
            return float(name.replace("Infinity", "inf"))

    _scan = _make_scanner(_Context())

    def _refuse(value: object) -> object:
        raise TypeError("not JSON: %s" % type(value).__name__)

    _encode = _make_encoder(None, _refuse, _encode_text, None, ":", ",", False, False, True)

    def dumps(value: object) -> bytes:
        return "".join(_encode(value, 0)).encode("utf-8", "surrogatepass")

    def loads(data: bytes) -> object:
        text = data.decode("utf-8", "surrogatepass")
        value, end = _scan(text, 0)
        if end != len(text):
            raise ValueError("more than one value in a frame")
        return value

except Exception:  # a Python without these C parts
    import json

    def dumps(value: object) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    def loads(data: bytes) -> object:
        return json.loads(data.decode("utf-8", "surrogatepass"))


class Lost(BaseException):
    """The other side is gone, or speaks garbage. Not an Exception: no check may swallow it."""


class TooLarge(Exception):
    """A message that the channel does not carry; nothing of it was sent."""


class Channel:
    """Frames `u32 LE length, JSON`. Bytes read ahead are bounded by one chunk."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._ahead = b""

    def send(self, message: object) -> None:
        data = dumps(message)
        if len(data) > FRAME_BYTES:
            raise TooLarge("a message of %d bytes, more than the %d allowed" % (len(data), FRAME_BYTES))
        frame = memoryview(len(data).to_bytes(4, "little") + data)
        try:
            while frame:
                frame = frame[os.write(self.fd, frame) :]
        except OSError as error:
            raise Lost("the channel closed (errno %s)" % error.errno) from None

    def receive(self) -> list:
        length = int.from_bytes(self._take(4), "little")
        if length > FRAME_BYTES:
            raise Lost("a frame of %d bytes was announced" % length)
        try:
            message = loads(self._take(length))
        except (ValueError, StopIteration, RecursionError, MemoryError):
            raise Lost("garbage on the channel") from None
        if type(message) is not list or len(message) < 2:
            raise Lost("garbage on the channel")
        return message

    def _take(self, count: int) -> bytes:
        parts = [self._ahead]
        have = len(self._ahead)
        while have < count:
            try:
                part = os.read(self.fd, max(_CHUNK, min(count - have, 1 << 20)))
            except OSError as error:
                raise Lost("the channel closed (errno %s)" % error.errno) from None
            if not part:
                raise Lost("the channel was closed")
            parts.append(part)
            have += len(part)
        data = b"".join(parts)
        self._ahead = data[count:]
        return data[:count]
