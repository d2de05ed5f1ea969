"""One request, tried several times: how it is ended, how long it may take, what an attempt that failed says."""

from __future__ import annotations

import random
import socket
import threading
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Optional

from .errors import FarmError

# Forked processes share the state of `random`, and would come back all at the same moment.
_random = random.SystemRandom()


class Abort:
    """Ends a request from another thread, at its hard limit or because nobody waits any more."""

    def __init__(self) -> None:
        self._fired = threading.Event()
        self._socket: Optional[socket.socket] = None

    @property
    def fired(self) -> bool:
        return self._fired.is_set()

    def wait(self, seconds: float) -> bool:
        return self._fired.wait(seconds)

    def watch(self, sock: Optional[socket.socket]) -> None:
        self._socket = sock
        if self.fired:
            self.fire()

    def fire(self) -> None:
        self._fired.set()
        sock = self._socket
        if sock is not None:
            try:
                # Of the plain socket: TLS must not write its goodbye from this thread.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:
                pass


@dataclass(frozen=True)
class Limits:
    """Monotonic instants: no attempt begins after `retry_until`, none lives beyond `hard`."""

    retry_until: float
    hard: float


class Failure(Exception):
    """An attempt that may be made again.

    `taken`: whether the farm may be at work on it: True; False where it surely is not, and knows of no earlier
    attempt either (its process is gone); None where this attempt says nothing new.
    """

    def __init__(
        self,
        reason: str,
        *,
        retry_after: Optional[float] = None,
        error: Optional[FarmError] = None,
        taken: Optional[bool] = True,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.error = error
        self.taken = taken


def backoff(attempt: int, retry_after: Optional[float]) -> float:
    """Doubling from 0.2 to 10 s with jitter; what the server asks for is a lower bound."""
    wait = min(10.0, 0.2 * 2.0 ** min(attempt, 10)) * _random.uniform(0.5, 1.0)
    return wait if retry_after is None else max(wait, retry_after * _random.uniform(1.0, 1.1))


def retry_after_s(text: Optional[str]) -> Optional[float]:
    """Seconds, from a number or a date; None if it is neither."""
    if not text:
        return None
    try:
        seconds = float(text)
        return min(max(0.0, seconds), 86_400.0) if seconds == seconds else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
