"""The nursery: a prepared interpreter, uid 0, that forks a judge and a candidate for each grade and runs nothing else.

It never reads a grade's message itself: whoever does is forked for it, after the candidate was, so that no check's
token or file name lies in the memory that a candidate is a copy of.
"""

from __future__ import annotations

import os
import sys

import _socket

from .process import become, take_streams
from .wire import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple

CONTROL = 3
_MESSAGE_BYTES = (1 << 20) + 4
_CHANNEL = 1000
_RESULT = 1001
# What makes a grade cheap that is one of many (`check.warm`); one alone loads what it needs.
_PREPARED = (
    "_rollout_farm.run _rollout_farm.candidate _rollout_farm.popen typing re math collections functools itertools random"
    " heapq bisect string copy operator json datetime decimal fractions dataclasses contextlib threading unittest"
    " traceback linecache"
).split()


def main() -> None:
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, CONTROL)
    if sys.argv[1:] == ["warm"]:
        for name in _PREPARED:
            __import__(name, fromlist=["*"])
        import gc

        # The forks' collections leave these pages shared.
        gc.collect()
        gc.freeze()
    control.send(b"R")
    while control.recv(1, _socket.MSG_PEEK):
        try:
            child = os.fork()
        except OSError as error:
            _receive(control)
            control.send(_packet(0, error.errno))
            continue
        if child == 0:
            try:
                _start(control)
            except BaseException as error:  # a message that is none of ours
                control.send(_packet(0, getattr(error, "errno", None) or 22))
            os._exit(0)
        os.waitpid(child, 0)


def _packet(first: int, second: int) -> bytes:
    return first.to_bytes(4, "little") + second.to_bytes(4, "little")


def _start(control: Any) -> None:
    """In a child of the nursery's that ends at once: both grade processes are then PID 1's to reap."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    candidate_pid = os.fork()
    if candidate_pid == 0:
        _guarded(_candidate, control, ours, theirs)
    theirs.close()
    # From here on a fault leaves the candidate's side with the end of its channel before it has read anything: it ends.
    message, fds = _receive(control)
    facts: Any = loads(message)
    if facts.get("module") and not _image_has(facts):
        raise FileNotFoundError(2, "no module %s" % facts["module"])
    judge_pid = os.fork()
    if judge_pid == 0:
        _guarded(_judge, control, ours, facts, fds)
    control.send(_packet(judge_pid, candidate_pid if facts["mode"] == "apart" else 0))


def _guarded(entry: Any, control: Any, *rest: Any) -> None:
    """A fault of ours, before anybody's code has run, must not come back into the nursery's loop."""
    try:
        os.close(CONTROL)
        entry(*rest)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        try:
            sys.stderr.flush()
        except Exception:
            pass
    os._exit(1)


def _receive(socket: Any) -> Tuple[bytes, List[int]]:
    """`u32 LE length, bytes`, the descriptors with the first of them."""
    data, extra, _, _ = socket.recvmsg(_MESSAGE_BYTES, _socket.CMSG_SPACE(16 * 4))
    fds: List[int] = []
    for level, kind, content in extra:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds += [int.from_bytes(content[at : at + 4], sys.byteorder) for at in range(0, len(content) - 3, 4)]
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "little"):
        more = socket.recv(_MESSAGE_BYTES)
        if not more:
            raise ConnectionError(104, "the message ended early")
        data += more
    return data[4:], fds


def _image_has(facts: Dict[str, Any]) -> bool:
    from . import imports

    top = facts["module"].partition(".")[0]
    for path in (*facts["own"], *facts["hidden"]):
        if path == top + ".py" or path.startswith(top + "/"):
            return True
    return imports.image_spec(top) is not None


def _candidate(ours: Any, theirs: Any) -> None:
    ours.close()
    try:
        message, fds = _receive(theirs)
    except ConnectionError:
        os._exit(0)
    facts: Any = loads(message)
    # Before the drop: only root may write the bytecode of the first time.
    from . import candidate

    take_streams(fds[:3], {_CHANNEL: theirs.detach()})
    become(facts["uid"], facts["gid"], "/work", facts["env"], own_proc=True)
    candidate.serve(_CHANNEL, facts)
    os._exit(0)


def _judge(channel: Any, facts: Dict[str, Any], fds: List[int]) -> None:
    from . import run

    if facts["mode"] == "apart":
        run.introduce(channel, facts, fds[:3])
        take_streams(fds[:3], {_CHANNEL: channel.detach(), _RESULT: fds[3]})
        become(facts["judge"]["uid"], facts["judge"]["gid"], "/judge", facts["env"])
        run.judge_apart(_CHANNEL, _RESULT, facts)
    else:
        from . import inprocess

        take_streams(fds[:3], {_RESULT: fds[3]})
        become(facts["candidate"]["uid"], facts["candidate"]["gid"], "/work", facts["env"], own_proc=True)
        inprocess.run(_RESULT, facts)
