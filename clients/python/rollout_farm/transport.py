"""HTTP/1.1 to one farm: connections, deadlines, retries. Knows nothing of rewards.

Connections are opened when first needed, belong to one process and serve one request at a time, so that threads,
forks and pickled copies never share one. Redirects are not followed: a key goes nowhere else.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from .address import Address, Key
from .attempts import Abort, Failure, Limits, backoff, retry_after_s
from .errors import FarmError, FarmProtocolError, FarmRefused, FarmUnavailable
from .wire import decode

MAX_ANSWER_BYTES = 512 << 20
PIECE_BYTES = 1 << 20
# A server may close a connection that lies idle; Node's habit is five seconds.
IDLE_S = 4.0
MAX_IDLE = 8
CONNECT_S = 10.0
_RETRIED = frozenset({408, 425, 429})


class Transport:
    def __init__(self, address: Address, key: Key) -> None:
        self.address = address
        self.key = key
        self._pool: Tuple[int, Deque[Tuple[float, http.client.HTTPConnection]]] = (0, deque())

    def __getstate__(self) -> Dict[str, Any]:
        return {"address": self.address, "key": self.key}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(state["address"], state["key"])  # type: ignore[misc]

    def send(
        self,
        method: str,
        path: str,
        body: Callable[[], Optional[bytes]],
        limits: Limits,
        headers: Optional[Dict[str, str]] = None,
        abort: Optional[Abort] = None,
    ) -> bytes:
        """The body of a 2xx answer.

        `body` is asked for each attempt, since what remains of a deadline shrinks; but not while the farm may be at
        work on an earlier attempt: the same bytes then join it, and its deadline is the right one already.
        """
        abort = abort or Abort()
        watchdog = threading.Timer(max(0.0, limits.hard - time.monotonic()), abort.fire)
        watchdog.daemon = True
        watchdog.start()
        attempt = 0
        taken = False
        sent: Optional[bytes] = None
        try:
            while True:
                sent = sent if taken else body()
                try:
                    return self._attempt(method, path, sent, limits, headers or {}, abort)
                except Failure as failure:
                    taken = taken if failure.taken is None else failure.taken
                    wait = backoff(attempt, failure.retry_after)
                    attempt += 1
                    if abort.fired or time.monotonic() + wait >= limits.retry_until:
                        raise self._unavailable(failure, attempt) from None
                abort.wait(wait)
        finally:
            watchdog.cancel()
            abort.watch(None)

    def _attempt(
        self, method: str, path: str, body: Optional[bytes], limits: Limits, headers: Dict[str, str], abort: Abort
    ) -> bytes:
        kept = self._take()
        if kept is not None:
            try:
                return self._exchange(kept, method, path, body, limits, headers, abort)
            except Failure as failure:
                if failure.error is not None or abort.fired:
                    raise
                # The server may have closed it while it lay idle: that says nothing about the server.
        return self._exchange(self._connection(limits.hard), method, path, body, limits, headers, abort)

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Optional[bytes],
        limits: Limits,
        headers: Dict[str, str],
        abort: Abort,
    ) -> bytes:
        done = False
        try:
            answer = self._begin(connection, method, path, body, limits.hard, headers, abort)
            data = self._whole(answer)
            done = not answer.will_close
            self._judge(answer.status, answer.headers, data)
            return data
        except (OSError, http.client.HTTPException) as problem:
            raise self.failure(problem, abort.fired) from None
        finally:
            if done:
                self._give(connection)
            else:
                connection.close()

    def _whole(self, answer: http.client.HTTPResponse) -> bytes:
        pieces, size = [], 0
        while True:
            # No larger pieces: some versions of Python make room for all that is asked for, whatever comes.
            piece = answer.read(PIECE_BYTES if answer.length is None else min(PIECE_BYTES, answer.length))
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
            if size > MAX_ANSWER_BYTES:
                raise FarmProtocolError(f"the answer of {self.address} is over {MAX_ANSWER_BYTES >> 20} MB")
        # A read with a limit does not complain about a body that was cut.
        if answer.length:
            raise Failure("the connection was lost within the answer")
        answer.close()
        return b"".join(pieces)

    def _begin(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Optional[bytes],
        hard: float,
        headers: Dict[str, str],
        abort: Abort,
    ) -> http.client.HTTPResponse:
        if connection.sock is None:
            try:
                connection.connect()
            except ConnectionRefusedError:
                raise Failure("the connection was refused", taken=False) from None
            except socket.timeout:
                raise Failure("no connection in time", taken=None) from None
            except ssl.SSLError:
                raise
            except OSError as problem:
                raise Failure(problem.strerror or str(problem) or "no connection", taken=None) from None
        connection.sock.settimeout(max(0.01, hard - time.monotonic()))
        abort.watch(connection.sock)
        if abort.fired:
            raise OSError("given up")
        secret = self.key.reveal()
        sent = {"Accept": "application/json", "User-Agent": "rollout-farm-python/0.1", **headers}
        if secret is not None:
            sent["Authorization"] = f"Bearer {secret}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, self.address.prefix + path, body=body, headers=sent)
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses a body early answers before it has read it all: hear it out.
            return connection.getresponse()
        return connection.getresponse()

    def stream(self, path: str, idle_s: float) -> Tuple[http.client.HTTPConnection, Any]:
        """One attempt at a long answer, on a connection of its own that the caller closes."""
        connection = self._connection(time.monotonic() + CONNECT_S)
        try:
            answer = self._begin(connection, "GET", path, None, time.monotonic() + idle_s, {}, Abort())
            if answer.status != 200:
                self._judge(answer.status, answer.headers, answer.read(1 << 20))
                raise FarmProtocolError(f"{self.address} answered {answer.status} to {path}", status=answer.status)
            return connection, answer
        except (OSError, http.client.HTTPException) as problem:
            connection.close()
            raise self.failure(problem) from None
        except BaseException:
            connection.close()
            raise

    def _judge(self, status: int, headers: Any, data: bytes) -> None:
        if 200 <= status < 300:
            return
        error = self._refusal(status, headers, data)
        if status in _RETRIED or (status >= 500 and status != 501):
            after = retry_after_s(headers.get("Retry-After"))
            raise Failure(str(error), retry_after=after, error=error, taken=None if status in (425, 429, 503) else True)
        raise error

    def _refusal(self, status: int, headers: Any, data: bytes) -> FarmError:
        code, message, hint = f"http_{status}", f"{self.address} answered {status}", None
        try:
            body = decode(data, "error")
            stated = body.get("error") if isinstance(body, dict) else None
            if isinstance(stated, dict):
                code = str(stated.get("code") or code)
                message = str(stated.get("message") or message)
                hint = str(stated["hint"]) if stated.get("hint") else None
            elif isinstance(stated, str):
                message = stated
        except FarmProtocolError:
            pass  # a proxy's page; the status says enough
        if status == 401 and self.key.reveal() is None:
            hint = "set FARM_API_KEY where this process runs; a key never travels in a pickle"
        if hint is None and 300 <= status < 400:
            hint = "redirects are not followed; give the farm's own URL"
        scrub = self.key.scrub
        kind = FarmUnavailable if status in _RETRIED or status >= 500 else FarmRefused
        return kind(scrub(message)[:2000], code=scrub(code)[:100], hint=hint and scrub(hint)[:1000], status=status)

    def failure(self, problem: Exception, given_up: bool = False) -> Exception:
        """What an exception of the network means: something to try again, or not."""
        if isinstance(problem, ssl.SSLCertVerificationError):
            return FarmRefused(
                f"the certificate of {self.address} is not trusted: {problem.verify_message}", code="tls"
            )
        if given_up or isinstance(problem, socket.timeout):
            return Failure("no answer in time")
        if isinstance(problem, http.client.IncompleteRead):
            return Failure("the connection was lost within the answer")
        if isinstance(problem, OSError):  # RemoteDisconnected is one too
            return Failure(problem.strerror or str(problem) or type(problem).__name__)
        return FarmProtocolError(f"{self.address} does not speak HTTP as expected: {type(problem).__name__}")

    def _unavailable(self, failure: Failure, attempts: int) -> FarmError:
        stated = failure.error
        return FarmUnavailable(
            self.key.scrub(f"{self.address} gave no answer ({attempts} attempts; the last: {failure.reason})"),
            code=stated.code if stated else None,
            hint=(stated.hint if stated else None) or "is the gateway up (farm serve), and the deadline long enough?",
            status=stated.status if stated else None,
        )

    def _connection(self, hard: float) -> http.client.HTTPConnection:
        timeout = max(0.01, min(CONNECT_S, hard - time.monotonic()))
        if self.address.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self.address.host, self.address.port, timeout=timeout, context=context)
        return http.client.HTTPConnection(self.address.host, self.address.port, timeout=timeout)

    def _idle(self) -> Deque[Tuple[float, http.client.HTTPConnection]]:
        owner, idle = self._pool
        if owner != os.getpid():
            # After a fork the parent's connections are the parent's: closed here, which shuts nothing down.
            self.close()
            idle = deque()
            self._pool = (os.getpid(), idle)
        return idle

    def close(self) -> None:
        """Closes what lies idle; the next request opens anew."""
        _, idle = self._pool
        while idle:
            idle.pop()[1].close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass  # the interpreter is going down

    def _take(self) -> Optional[http.client.HTTPConnection]:
        idle = self._idle()
        while True:
            try:
                since, connection = idle.pop()
            except IndexError:
                return None
            if time.monotonic() - since < IDLE_S:
                return connection
            connection.close()

    def _give(self, connection: http.client.HTTPConnection) -> None:
        idle = self._idle()
        if len(idle) < MAX_IDLE:
            idle.append((time.monotonic(), connection))
        else:
            connection.close()
