"""Closed groups of a run, as they come: NDJSON with cursors, taken up again behind the last whole line.

A line that was cut is not read; what was read is not read again. The stream's end is believed only once the run's
own state says that nothing more will come.
"""

from __future__ import annotations

import http.client
import time
from typing import Any, Callable, Dict, Iterator, Optional
from urllib.parse import quote, urlencode

from .attempts import Failure, backoff
from .errors import FarmProtocolError, FarmUnavailable
from .transport import Transport
from .wire import decode, finite, mapping

MAX_LINE_BYTES = 256 << 20
ENDED = frozenset({"done", "cancelled", "stopped"})


def follow_results(
    transport: Transport,
    state: Callable[[], Dict[str, Any]],
    run: str,
    after: Optional[str],
    follow: bool,
    *,
    idle_s: float = 60.0,
    patience_s: float = 600.0,
) -> Iterator[Dict[str, Any]]:
    cursor = after
    quiet_since = time.monotonic()
    attempt = 0
    last_round = not follow
    while True:
        failure = Failure("the stream ends at once")
        try:
            for record in _lines(transport, run, cursor, not last_round, idle_s):
                quiet_since, attempt = time.monotonic(), 0
                if record is None:
                    continue
                check_group(record, run)
                if record["cursor"] == cursor:
                    continue
                cursor = record["cursor"]
                yield record
                # However long the caller kept it: that is not the farm's silence.
                quiet_since = time.monotonic()
            if last_round:
                return
            if state().get("state") in ENDED:
                # Groups may have closed between the stream's end and this answer: one more look, without waiting.
                last_round = True
                continue
        except Failure as problem:
            failure = problem
        except FarmUnavailable as problem:
            failure = Failure(problem.message)
        wait = backoff(attempt, failure.retry_after)
        attempt += 1
        if time.monotonic() + wait - quiet_since >= patience_s:
            raise FarmUnavailable(
                transport.key.scrub(
                    f"{transport.address} gave no results of {run} for {patience_s:g} s: {failure.reason}"
                ),
                hint=f"go on later with after={cursor!r}",
            )
        time.sleep(wait)


def _lines(
    transport: Transport, run: str, cursor: Optional[str], follow: bool, idle_s: float
) -> Iterator[Optional[Dict[str, Any]]]:
    """Records of one connection; None for a sign of life. Ends where the server ends it, else raises Failure."""
    query = {**({"after": cursor} if cursor is not None else {}), **({"follow": "1"} if follow else {})}
    path = f"/v1/runs/{quote(run, safe='')}/results" + (f"?{urlencode(query)}" if query else "")
    connection, answer = transport.stream(path, idle_s)
    try:
        rest = b""
        for piece in _pieces(transport, answer):
            lines = (rest + piece).split(b"\n")
            rest = lines.pop()
            if len(rest) > MAX_LINE_BYTES:
                raise FarmProtocolError(f"a result is over {MAX_LINE_BYTES >> 20} MB")
            for line in lines:
                if not line.strip():
                    yield None
                    continue
                record = mapping(decode(line, "a result"), "a result")
                # A record without a group is about the stream: the notice of a drain.
                yield record if "group" in record else None
        if rest:
            raise Failure("the stream ends within a line")
    finally:
        connection.close()
        answer.close()


def _pieces(transport: Transport, answer: Any) -> Iterator[bytes]:
    """The body as it comes; raises Failure where it ends before its end."""
    expected = None if answer.chunked else answer.length
    if expected is None and not answer.chunked:
        hint = "a proxy before the farm takes away chunked encoding; reach the farm directly, or let it speak HTTP/1.1"
        raise FarmProtocolError("the results come without a mark of their end, so a cut could not be told", hint=hint)
    received = 0
    while expected is None or received < expected:
        try:
            piece = answer.read1(65_536)
        except (OSError, http.client.HTTPException, ValueError) as problem:
            raise transport.failure(problem) from None
        if not piece:
            if expected is not None:
                raise Failure("the stream was cut")
            return
        received += len(piece)
        yield piece


def check_group(record: Dict[str, Any], run: str) -> None:
    """Raises FarmProtocolError unless every member is a finite reward, or has none at all."""
    if record.get("run") != run:
        raise FarmProtocolError(f"a result of run {record.get('run')!r} came in the results of {run}")
    if not isinstance(record.get("cursor"), str) or not record["cursor"]:
        raise FarmProtocolError("a result has no cursor")
    group, members = record["group"], record.get("members")
    if isinstance(group, bool) or not isinstance(group, int) or not isinstance(members, list):
        raise FarmProtocolError("a result has no group number or no members")
    for index, member in enumerate(members):
        where = f"member {index} of group {group}"
        status = mapping(member, where).get("status")
        if status == "completed":
            finite(member.get("reward"), f"the reward of {where}")
            finite(member.get("advantage"), f"the advantage of {where}")
        elif status != "no_result" or member.get("reward") is not None:
            raise FarmProtocolError(f"{where} is neither completed nor without a result")
