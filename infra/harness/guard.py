"""No byte of the candidate's runs in the judge. Its files lie there to be read (a check may look at the source), and a
check that would execute one (`exec(open(...).read())`), or load a pickle that calls what it likes, is refused.
"""

from __future__ import annotations

import sys
import types

from . import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Set, Tuple

    _Mark = Tuple[str, tuple, tuple, str]

# What leads from an expression to the process around it. Text that a check runs may be the candidate's answer.
_LEADING = frozenset(
    "gc ctypes inspect exit quit eval exec compile open getattr setattr delattr vars globals locals breakpoint modules"
    " gi_frame gi_code cr_frame ag_frame tb_frame f_back f_globals f_locals f_builtins settrace setprofile".split()
)
_TRUSTED = (sys.base_prefix + "/", "/farm/", "<frozen")


# Of the standard library: who runs text that stands in annotations and in settings. The candidate's have whatever it likes there.
_RUNNING = ("/typing.py", "/inspect.py", "/annotationlib.py", "/logging/config.py")
# And who runs text that it is handed, as `exec` does.
_HANDED = ("/timeit.py", "/code.py", "/bdb.py", "/profile.py", "/cProfile.py", "/trace.py")
# The frame that `timeit` puts around a function.
_TIMED = ("_stmt", "_setup")
_NAMING = ("LOAD_", "RETURN_", "BINARY_", "BUILD_", "LIST_EXTEND", "SET_UPDATE", "RESUME", "CACHE", "NOP", "COPY_FREE", "TO_BOOL")


def _is_only_named(code: types.CodeType) -> bool:
    """Names, attributes, indexes and `|`: nothing is called, bound or defined."""
    import dis

    return all(step.opname.startswith(_NAMING) for step in dis.get_instructions(code))


def _mark(code: types.CodeType) -> _Mark:
    """What text appended elsewhere does not change; the bytes themselves may."""
    constants = [constant for constant in code.co_consts if type(constant) is not types.CodeType]
    return code.co_name, code.co_varnames, code.co_names, repr(constants)


def _marks(code: types.CodeType) -> Set[_Mark]:
    """The code itself, and every function in it."""
    found = {_mark(code)}
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            found |= _marks(constant)
    return found


class Guard:
    def __init__(self, judge: Any, hidden: List[str], paths: List[str], is_candidates: Callable[[Any], Any]) -> None:
        self._judge = judge
        self._own = {"/judge/" + path for path in hidden}
        self._paths = paths
        self._is_candidates = is_candidates
        self._was_read = False
        self._compared: Set[str] = set()
        self._known: Optional[Set[_Mark]] = None
        self._examples: Optional[Set[str]] = None

    def __call__(self, event: str, args: tuple) -> None:
        if event == "exec":
            if type(args[0]) is types.CodeType and args[0].co_filename[:1] == "<":
                self._text(args[0])
            # A check that has read none of its files may well run text of its own that says the same.
            if self._was_read:
                self._exec(args[0])
        elif event == "open":
            self._judge.files.opened(args[0], args[2])
            if not self._was_read and type(args[0]) is str:
                self._was_read = bool(self._is_candidates(args[0])) or bool(self._judge.files.fetched)
        elif event == "compile":
            if type(args[1]) is str and args[1].startswith("<doctest ") and not self._is_own_example(args[0]):
                raise self._judge.refuse("examples in the candidate's own documentation, to be run by the check")
        elif event in ("os.exec", "os.posix_spawn"):
            # It would run as the judge's user, which is whom files and helpers of the check belong to.
            raise self._judge.refuse("a program that the check starts by itself, and not by subprocess")
        elif event == "pickle.find_class":
            self._find_class(*args)

    def _text(self, code: types.CodeType) -> None:
        """Code of no file, run by the check itself: nothing that leads out of an expression, unless the check says it."""
        name = code.co_filename
        if name.startswith("<doctest "):
            return
        caller = sys._getframe(2).f_code.co_filename
        if not name.startswith("<frozen") and caller.endswith(_RUNNING) and not _is_only_named(code):
            raise self._judge.refuse("an annotation, or a setting, that is more than a name")
        if name.startswith("<frozen") or caller not in self._own and not caller.endswith(_HANDED):
            return
        for mark in _marks(code):
            for used in mark[2]:
                if (used in _LEADING or used.startswith("_") and used not in _TIMED) and not self._judge.mentioned(used):
                    raise self._judge.refuse("text that the check runs and that asks for %s" % used)

    def _is_own_example(self, source: Any) -> bool:
        """Whether it stands in a hidden file: whose documentation an example is of does not say whose it is."""
        if self._examples is None:
            self._examples = set()
            for path in self._own:
                with open(path, encoding="utf-8", errors="replace") as file:
                    self._examples.update(line.strip().lstrip(">.").strip() for line in file)
        text = source.decode("utf-8", "replace") if type(source) is bytes else source
        return type(text) is str and all(line.strip() in self._examples for line in text.splitlines())

    def _exec(self, code: Any) -> None:
        if type(code) is not types.CodeType or code.co_filename.startswith(_TRUSTED) or code.co_filename in self._own:
            return
        paths = {*self._paths, *self._judge.files.fetched}
        if self._known is None or paths != self._compared:
            self._known, self._compared = set(), paths
            for path in paths:
                self._known |= self._file(path)
        if self._known and not self._known.isdisjoint(_marks(code)):
            raise self._judge.refuse("code of the candidate's, to be run by the check itself")

    def _file(self, path: str) -> Set[_Mark]:
        try:
            with open("/judge/" + path, "rb") as file:
                source = file.read()
            found = _marks(compile(source, path, "exec", dont_inherit=True))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return set()
        return {mark for mark in found if mark[0] == "<module>" or mark[0][0] != "<" and mark[2]}

    def _find_class(self, module: str, name: str) -> None:
        if self._judge.exports.is_open_module(module):
            return
        try:
            names.named(module, name)
        except (ValueError, ImportError, AttributeError):
            raise self._judge.refuse("a pickle that asks for %s.%s" % (module, name)) from None
