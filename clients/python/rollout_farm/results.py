"""Closed groups of a run, as they come: NDJSON with cursors, taken up again behind the last whole line.

A line that was cut is not read; what was read is not read again. The stream's end is believed only once the run's
own state says that nothing more will come.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, Optional
from urllib.parse import quote, urlencode

from .errors import FarmProtocolError, FarmUnavailable
from .transport import Abort, Failure, Transport, backoff
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
) -> Iterator[dict]:
    cursor = after
    quiet_since = time.monotonic()
    attempt = 0
    last_round = not follow
    while True:
        failure: Optional[Failure] = None
        whole = False
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
                quiet_since = time.monotonic()
            whole = True
        except Failure as problem:
            failure = problem
        if whole and last_round:
            return
        if whole and state().get("state") in ENDED:
            # Groups may have closed between the stream's end and this answer: one more look, without waiting.
            last_round = True
            continue
        wait = backoff(attempt, failure.retry_after if failure else None)
        attempt += 1
        if time.monotonic() + wait - quiet_since >= patience_s:
            reason = failure.reason if failure else "the stream ends at once"
            raise FarmUnavailable(
                transport.key.scrub(f"{transport.address} gave no results of {run} for {patience_s:g} s: {reason}"),
                hint=f"go on later with after={cursor!r}",
            )
        time.sleep(wait)


def _lines(
    transport: Transport, run: str, cursor: Optional[str], follow: bool, idle_s: float
) -> Iterator[Optional[Dict[str, Any]]]:
    """Records of one connection; None for a sign of life. Ends where the server ends it, else raises Failure."""
    query = {**({"after": cursor} if cursor is not None else {}), **({"follow": "1"} if follow else {})}
    path = f"/v1/runs/{quote(run, safe='')}/results" + (f"?{urlencode(query)}" if query else "")
    abort = Abort()
    connection, answer = transport.stream(path, idle_s, abort)
    try:
        yield None
        while True:
            try:
                line = answer.readline(MAX_LINE_BYTES + 1)
            except Exception as problem:
                failure = transport._failure(problem, abort)
                raise failure from None
            if not line:
                # A chunked answer that was cut reads as empty too, but is not closed.
                if not answer.isclosed():
                    raise Failure("the stream was cut")
                return
            if not line.endswith(b"\n"):
                if len(line) > MAX_LINE_BYTES:
                    raise FarmProtocolError(f"a result is over {MAX_LINE_BYTES >> 20} MB")
                raise Failure("the stream was cut within a line")
            if not line.strip():
                yield None
                continue
            record = mapping(decode(line, "a result"), "a result")
            # A record without a group is about the stream: a heartbeat, or the notice of a drain.
            yield record if "group" in record else None
    finally:
        connection.close()
        answer.close()


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
