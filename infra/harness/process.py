"""What makes a fork of the nursery a process like any that was started afresh: descriptors, user, folder, environment."""

from __future__ import annotations

import os
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List

# The nursery holds few descriptors; all lie below this.
_OURS = 256
_PR_SET_DUMPABLE = 4


def take_streams(streams: List[int], kept: Dict[int, int]) -> None:
    """The grade's stdin, stdout and stderr as 0, 1 and 2; `kept` under its numbers; nothing else open."""
    for number, fd in kept.items():
        os.dup2(fd, number, False)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    os.closerange(3, _OURS)


def become(uid: int, gid: int, folder: str, env: Dict[str, str], own_proc: bool = False) -> None:
    """Drops for good. No capability is left: all user ids have left 0, and exec gains nothing (no-new-privs)."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    try:
        with open("/proc/self/oom_score_adj", "wb", 0) as file:
            file.write(b"1000")
    except OSError:
        pass
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    os.umask(0o022)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    if own_proc:
        _own_proc()


_call: Any = None


def prepare() -> None:
    """Before the forks: what `become` needs that is dear to load."""
    global _call
    try:
        import _ctypes

        prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")
        call = _ctypes.call_function
        _call = lambda *args: call(prctl, args)  # noqa: E731
    except (ImportError, OSError, AttributeError):
        pass
    sys.modules.pop("_ctypes", None)


def _own_proc() -> None:
    """Changing users took /proc/self away, which a started program owns. The judge stays closed to everybody."""
    global _call
    if _call is not None:
        _call(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    _call = None


def as_started(script: Any, argv: List[str], tops: Iterable[str] = ()) -> None:
    """`sys` as `python3 SCRIPT` has it: argv, the script's folder in front of the path, an empty `__main__`.

    `tops` are names that the script's folder has: of those only what every start loads stays loaded.
    """
    sys.argv[:] = argv
    for top in tops:
        if top not in sys.modules["_rollout_farm"].started:
            for name in [name for name in sys.modules if name == top or name.startswith(top + ".")]:
                del sys.modules[name]
    if script is not None:
        sys.path.insert(0, os.path.dirname(script))
    sys.modules["__main__"] = types.ModuleType("__main__")
