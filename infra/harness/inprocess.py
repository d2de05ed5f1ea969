"""In one process with the candidate's code, with a completion proof: the end of the check was reached, not only an exit.

Weaker than apart: code in this process can find what is here and write the line itself. The certificate says so.
"""

from __future__ import annotations

import os
import sys

from .ending import Ending
from .imports import image_spec, tops_of
from .process import as_started
from .run import exit_code, new_main, run_file, show, wind_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List


class _ImageFirst:
    """The image's modules win over files of the same name, unless the task's own or hidden ones have it."""

    def __init__(self, tops: Any) -> None:
        self._tops = tops

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return image_spec(name) if path is None and name not in self._tops else None


def run(result: int, facts: Dict[str, Any]) -> None:
    ending = Ending(result, facts.pop("token"))
    tops = tops_of([*facts["own"], *facts["hidden"]])
    sys.meta_path.insert(0, _ImageFirst(tops))
    if facts.get("module"):
        code, completed, why = _module(facts)
    else:
        code, completed, why = _file(facts)
    if completed and code == 0:
        # Now: an exit handler of the candidate's must not come between the last check and its proof.
        ending.report(True, code)
    code = wind_up(code)
    ending.leave(completed, code, why)


def _file(facts: Dict[str, Any]) -> Any:
    path = "/work/" + facts["check"]
    as_started(path, facts["argv"], tops_of([*facts["own"], *facts["hidden"]]))
    main = new_main(path)
    trusted = _texts([path, *("/work/" + hidden for hidden in facts["hidden"])])
    try:
        run_file(path, main)
    except SystemExit as error:
        return _left(error, trusted)
    except BaseException as error:  # whatever a check raises is told as Python tells it
        show(error)
        return 1, True, None
    return 0, True, None


def _texts(paths: Iterable[str]) -> Dict[str, List[str]]:
    """The lines of the check's files, read before any of the candidate's code runs."""
    found: Dict[str, List[str]] = {}
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found[path] = file.read().split("\n")
        except OSError:
            pass
    return found


# What a line says that means to leave. The function under test may be `sys.exit` itself, which has no code to be seen.
_EXITS = ("sys.exit", "unittest.main", " exit(", " quit(", " main(", "SystemExit")


def _left(error: SystemExit, trusted: Any) -> Any:
    """An exit counts as the check's own only if all code on the way to it is the check's, or the image's, and the
    check's last line on the way says that it leaves."""
    step = error.__traceback__
    last = " exit("
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        line = step.tb_lineno
        step = step.tb_next
        full = os.path.join("/work", name)
        if full.startswith("/work/") and full not in trusted and not name.startswith("<frozen"):
            return exit_code(error) or 1, False, "SystemExit was raised by code that is not the check's"
        if full in trusted:
            last = " " + "".join(trusted[full][line - 1 : line])
    if not any(word in last for word in _EXITS):
        return exit_code(error) or 1, False, "SystemExit was raised where the check does not ask for it"
    return exit_code(error), True, None


def _module(facts: Dict[str, Any]) -> Any:
    name = facts["module"]
    as_started(None, facts["argv"], tops_of([*facts["own"], *facts["hidden"]]))
    sys.path.insert(0, "/work")
    trusted = _texts("/work/" + hidden for hidden in facts["hidden"])
    try:
        if name == "pytest":
            import pytest

            return int(pytest.main(list(facts["argv"][1:]))), True, None
        import runpy

        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        return _left(error, trusted)
    except BaseException as error:  # as Python tells it
        show(error)
        return 1, True, None
    return 0, True, None
