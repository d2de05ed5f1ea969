"""How a grade's trusted process ends: one line to the runner, then at once. Nothing of a check can catch or undo it."""

from __future__ import annotations

import os
import sys

from .wire import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

_EXIT = os._exit
_WRITE = os.write
_TEXT = 2000


class Ending:
    def __init__(self, fd: int, token: Any) -> None:
        self._fd = fd
        self._token = token
        self._pid = os.getpid()

    def report(
        self, completed: bool, code: int, why: Optional[str] = None, refused: Optional[List[str]] = None
    ) -> None:
        if self._fd < 0 or os.getpid() != self._pid:
            return
        line = {"completed": completed, "exit": code, "token": self._token}
        if why:
            line["why"] = why[:_TEXT]
        if refused:
            line["refused"] = "; ".join(refused)[:_TEXT]
        try:
            _WRITE(self._fd, dumps(line) + b"\n")
        except OSError:
            pass
        self._fd = -1

    def leave(self, completed: bool, code: int, why: Optional[str] = None, refused: Optional[List[str]] = None) -> None:
        _flush()
        self.report(completed, code, why, refused)
        _EXIT(code)

    def lost(self, why: str, judge: Any) -> None:
        """The candidate's process is needed and gone: that is its doing, whatever the check would make of it."""
        _flush()
        try:
            _WRITE(2, ("the candidate's process ended or broke its channel: %s\n" % why).encode("utf-8", "replace"))
        except OSError:
            pass
        self.report(False, 1, "the candidate's channel was lost: %s" % why, judge.refused)
        _EXIT(1)


def _flush() -> None:
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except BaseException:  # closed, replaced or full: nothing to be done about it
            pass
