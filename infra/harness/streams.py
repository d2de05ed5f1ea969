"""What the candidate prints goes to the judge with the answer, and its input may be the check's: as in one process."""

from __future__ import annotations

import builtins
import io
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Tuple

_AT_ONCE = 1 << 16


class _Raw(io.RawIOBase):
    def __init__(self, capture: "Capture", number: int) -> None:
        self._capture = capture
        self._number = number

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: Any) -> int:
        self._capture.add(self._number, bytes(data))
        return len(data)


class Capture:
    """Bytes written since the last message, in order; much at once goes out in a message of its own."""

    def __init__(self, peer: Any) -> None:
        self._peer = peer
        self._parts: List[Tuple[int, bytes]] = []
        self._size = 0
        self._files: List[Any] = []

    def install(self) -> None:
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = io.TextIOWrapper(
                io.BufferedWriter(_Raw(self, number)), "utf-8",
                "surrogateescape" if number == 1 else "backslashreplace", write_through=number == 2,
            )  # fmt: skip
            file.mode = "w"
            self._files.append(file)
            setattr(sys, name, file)
            setattr(sys, "__%s__" % name, file)

    def add(self, number: int, data: bytes) -> None:
        self._parts.append((number, data))
        self._size += len(data)
        if self._size >= _AT_ONCE and self._peer.lock.acquire(False):
            try:
                self._peer.channel.send(["o", 0, self._packed()])
            finally:
                self._peer.lock.release()

    def taken(self) -> Optional[list]:
        for file in self._files:
            try:
                file.flush()
            except Exception:
                pass
        return self._packed() if self._parts else None

    def _packed(self) -> list:
        parts, self._parts, self._size = self._parts, [], 0
        return [[number, data.decode("latin-1")] for number, data in parts]


class RemoteInput(io.TextIOBase):
    """`sys.stdin` while the check has put something else in its own place."""

    _plain: Tuple[Any, Any] = (None, None)

    def __init__(self, peer: Any) -> None:
        self._peer = peer

    @classmethod
    def install(cls, peer: Any, wanted: List[bool]) -> None:
        if cls._plain[0] is None:
            cls._plain = (sys.stdin, builtins.input)
        replaced, function = wanted
        sys.stdin = cls(peer) if replaced else cls._plain[0]
        builtins.input = (lambda *prompt: peer.request("input", *prompt)) if function else cls._plain[1]

    def readable(self) -> bool:
        return True

    def read(self, size: Optional[int] = -1) -> str:  # type: ignore[override]
        return self._peer.request("stdin", "read", -1 if size is None else size)

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return self._peer.request("stdin", "readline", size)
