"""The nursery: a prepared interpreter, uid 0, that forks a judge and a candidate for each grade and runs nothing else.

A grade's message is read once the candidate has been forked, and never by a nursery that stays, so that no check's token
or file name lies in the memory that a candidate is a copy of. A nursery whose grade is its last becomes the judge.
"""

from __future__ import annotations

import os
import sys

import _socket

from .process import become, prepare, take_streams
from .wire import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple

CONTROL = 3
_MESSAGE_BYTES = (1 << 20) + 4
# In the last byte of a message's length: there may be another grade after this one.
_STAY = 0x80
_CHANNEL = 1000
_RESULT = 1001
# What makes a grade cheap that is one of many (`check.warm`); one alone loads what it needs. Not `random`, `threading`
# and `logging`: what they do in every fork costs more than loading them in the grades that want them.
_PREPARED = (
    "_rollout_farm.popen typing re math collections functools itertools heapq bisect string copy operator json datetime"
    " decimal fractions dataclasses contextlib unittest traceback linecache"
).split()


def main() -> None:
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, CONTROL)
    from . import candidate, run  # noqa: F401

    prepare()
    warm = sys.argv[1:] == ["warm"]
    for name in _PREPARED if warm else ():
        __import__(name)
    _freeze(warm)
    control.send(b"R")
    while head := control.recv(4, _socket.MSG_PEEK | _socket.MSG_WAITALL):
        if not head[-1] & _STAY:
            return _become_judge(control)
        try:
            child = os.fork()
        except OSError as error:
            _refuse(control, error)
            continue
        if child == 0:
            try:
                _start(control)
            finally:
                os._exit(0)
        os.waitpid(child, 0)


def _freeze(collect: bool) -> None:
    """The forks' collections leave these pages shared."""
    import gc

    if collect:
        gc.collect()
    gc.freeze()
    gc.enable()
    del sys.modules["gc"]


def _refuse(control: Any, error: BaseException) -> None:
    """Takes the message, where nobody has, so that the next one is read from its start; and keeps nothing of it."""
    try:
        for fd in _receive(control)[1]:
            os.close(fd)
    finally:
        control.send(_packet(0, getattr(error, "errno", None) or 22))


def _packet(first: int, second: int) -> bytes:
    return first.to_bytes(4, "little") + second.to_bytes(4, "little")


def _start(control: Any) -> None:
    """In a child of the nursery's that ends at once: both grade processes are then PID 1's to reap.

    The fewer steps it takes, the fewer pages it copies.
    """
    try:
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        candidate_pid = os.fork()
        if candidate_pid == 0:
            _guarded(_candidate, ours, theirs)
        theirs.close()
        # From here on a fault leaves the candidate's side with the end of its channel before it has read anything: it ends.
        # It is read here: the nursery looks for the next one when this process has ended.
        task = _receive(control)
    except BaseException as error:
        _refuse(control, error)
        return
    try:
        if os.fork() == 0:
            _guarded(_take_task, control, ours, candidate_pid, task)
    except OSError as error:
        control.send(_packet(0, error.errno))


def _become_judge(control: Any) -> None:
    """A nursery whose grade is its last is the judge itself, once the candidate's process is there: two forks less."""
    try:
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        child = os.fork()
        if child == 0:
            try:
                candidate_pid = os.fork()
                if candidate_pid == 0:
                    _guarded(_candidate, ours, theirs)
            except OSError as error:
                candidate_pid = -error.errno
            theirs.send(b"%d" % candidate_pid)
            os._exit(0)
        os.waitpid(child, 0)
        candidate_pid = int(ours.recv(16, _socket.MSG_DONTWAIT))
        theirs.close()
        if candidate_pid < 0:
            raise OSError(-candidate_pid, "fork")
    except Exception as error:
        _refuse(control, error)
        return
    _guarded(_take_task, control, ours, candidate_pid, None)


def _take_task(control: Any, ours: Any, candidate_pid: int, task: Any) -> None:
    try:
        message, fds = task or _receive(control)
        facts: Any = loads(message)
        if facts.get("module") and not _image_has(facts):
            raise FileNotFoundError(2, "no module %s" % facts["module"])
    except BaseException as error:  # a message that is none of ours
        control.send(_packet(0, getattr(error, "errno", None) or 22))
        os._exit(0)
    control.send(_packet(os.getpid(), candidate_pid if facts["mode"] == "apart" else 0))
    os.close(CONTROL)
    _judge(ours, facts, fds)


def _guarded(entry: Any, *rest: Any) -> None:
    """A fault of ours, before anybody's code has run, must not come back into the nursery's loop."""
    try:
        entry(*rest)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        try:
            sys.stderr.flush()
        except Exception:
            pass
    os._exit(1)


def _receive(socket: Any) -> Tuple[bytes, List[int]]:
    """`u32 LE length, bytes`, the descriptors with the first of them; bit 31 of the length is not of it."""
    data, extra, _, _ = socket.recvmsg(_MESSAGE_BYTES, _socket.CMSG_SPACE(16 * 4))
    fds: List[int] = []
    for level, kind, content in extra:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds += [int.from_bytes(content[at : at + 4], sys.byteorder) for at in range(0, len(content) - 3, 4)]
    while len(data) < 4 or len(data) < 4 + (int.from_bytes(data[:4], "little") & 0x7FFFFFFF):
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
    os.close(CONTROL)
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
