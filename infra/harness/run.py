"""One grade apart, on the judge's side: from the dropped fork to what is told at its end."""

from __future__ import annotations

import sys
import types

from .ending import Ending
from .hooks import Hooks
from .imports import Imports, tops_of
from .judge import Judge
from .process import as_started
from .wire import Channel, dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional


def introduce(channel: Any, facts: Dict[str, Any], streams: List[int]) -> None:
    """What the candidate's side may know, with its streams. Neither token nor hidden names."""
    import _socket

    hidden = set(facts["hidden"])
    tops = sorted(tops_of(path for path in facts["files"] if path not in hidden))
    told = {**facts["candidate"], "env": facts["env"], "argv": facts["argv"], "check": facts["check"], "tops": tops}
    data = dumps(told)
    rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in streams)
    channel.sendmsg([len(data).to_bytes(4, "little") + data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])


def judge_apart(fd: int, result: int, facts: Dict[str, Any]) -> None:
    ending = Ending(result, facts["token"])
    as_started(None, facts["argv"], tops_of([*facts["own"], *facts["hidden"]]))
    imports: Any = None
    judge = Judge(Channel(fd), ending, lambda name: imports.is_check_module(name))
    imports = Imports(judge, facts)
    judge.functions, judge.declared = frozenset(facts["functions"]), frozenset(facts["names"])
    imports.install()
    judge.mentioned = mentioned_in(facts["hidden"])
    Hooks(judge, imports, facts).install()
    main = new_main("/judge/" + facts["check"])
    code = 1
    why: Optional[str] = None
    try:
        run_file("/judge/" + facts["check"], main)
        code = 0
    except SystemExit as error:
        if judge.was_raised_there(error) or not is_from_files(error):
            why = "a SystemExit that no file of the check raised reached its top"
            code = 1
            show(error)
        else:
            code = exit_code(error)
    except BaseException as error:  # whatever a check raises is told as Python tells it
        show(error)
    if why is None:
        code = wind_up(code)
    ending.leave(why is None, code, why, judge.refused)


def mentioned_in(hidden: List[str]) -> Any:
    """Which names the check's text holds: a star import need not fetch the others, nor load what they are of."""
    text = ""
    for path in hidden:
        if path.endswith(".py"):
            with open("/judge/" + path, encoding="utf-8", errors="replace") as file:
                text += file.read()
    dynamic = any(word in text for word in ("eval(", "exec(", "globals(", "locals(", "vars(", "dir("))
    return lambda name, star=False: dynamic and star or name in text


def new_main(path: str) -> types.ModuleType:
    import builtins

    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = builtins
    main.__dict__["__cached__"] = None
    sys.modules["__main__"] = main
    return main


def run_file(path: str, main: types.ModuleType) -> None:
    with open(path, "rb") as file:
        source = file.read()
    code = compile(source, path, "exec", dont_inherit=True)
    del source
    exec(code, main.__dict__)


def is_from_files(error: BaseException) -> bool:
    """Whether no text that was run as code (it may be the candidate's) is on the way to where this was raised."""
    step = error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if name.startswith("<") and not name.startswith("<frozen"):
            return False
        step = step.tb_next
    return True


def exit_code(error: SystemExit) -> int:
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    try:
        sys.stderr.write("%s\n" % (code,))
    except Exception:
        pass
    return 1


def show(error: BaseException) -> None:
    """The traceback from the check's own first line on, and what is known of the candidate's frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith("/farm/"):
        trace = trace.tb_next
    try:
        sys.stdout.flush()
        remote = getattr(error, "__dict__", {}).get("_farm_trace")
        if remote:
            sys.stderr.write("In the candidate's process:\n%s" % remote)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    except BaseException:
        pass


def wind_up(code: int) -> int:
    """What Python does after a script's last line: waits for its threads, runs its exit handlers."""
    try:
        threading = sys.modules.get("threading")
        if threading is not None:
            threading._shutdown()  # type: ignore[attr-defined]
        import atexit

        atexit._run_exitfuncs()
    except BaseException as error:
        show(error)
    return code


