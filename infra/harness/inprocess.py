"""In one process with the candidate's code, with a completion proof: the end of the check was reached, not only an exit.

Weaker than apart: code in this process can find what is here and write the line itself. The certificate says so.
"""

from __future__ import annotations

import os
import sys

from .ending import Ending
from .imports import tops_of
from .process import as_started
from .run import exit_code, new_main, run_file, show, wind_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict


def run(result: int, facts: Dict[str, Any]) -> None:
    ending = Ending(result, facts.pop("token"))
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
    as_started(path, facts["argv"], tops_of(facts["files"]))
    main = new_main(path)
    trusted = {"/work/" + hidden for hidden in facts["hidden"]}
    trusted.add(path)
    try:
        run_file(path, main)
    except SystemExit as error:
        return _left(error, trusted)
    except BaseException as error:  # whatever a check raises is told as Python tells it
        show(error)
        return 1, True, None
    return 0, True, None


def _left(error: SystemExit, trusted: Any) -> Any:
    """An exit counts as the check's own only if a file of its own, or the image's, raised it."""
    step = error.__traceback__
    name = ""
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        step = step.tb_next
    name = os.path.join("/work", name)
    if name.startswith("/work/") and name not in trusted or name.startswith("/work/<"):
        return exit_code(error) or 1, False, "SystemExit was raised by code that is not the check's"
    return exit_code(error), True, None


def _module(facts: Dict[str, Any]) -> Any:
    name = facts["module"]
    as_started(None, facts["argv"], tops_of(facts["files"]))
    sys.path.insert(0, "/work")
    trusted = {"/work/" + hidden for hidden in facts["hidden"]}
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
