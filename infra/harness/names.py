"""What both sides know by name: built-in types, and pure functions and classes of the standard library.

The candidate's word "this is math.sqrt" makes the judge use its own math.sqrt. So nothing here may end a process, open
anything, run text as code, or equal everything.
"""

from __future__ import annotations

import builtins
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Tuple

_PURE_BUILTINS = frozenset(
    "abs all any ascii bin callable chr divmod format hash hex isinstance issubclass iter len max min next oct ord pow"
    " repr round sorted sum".split()
)
_MODULES = frozenset(
    "math cmath typing collections collections.abc functools itertools operator fractions decimal datetime string heapq"
    " bisect statistics numbers enum dataclasses abc copy re".split()
)
# Where the exceptions live that are no built-ins and yet meant by `except json.JSONDecodeError`.
_EXCEPTION_MODULES = frozenset(
    "asyncio.exceptions asyncio.queues binascii concurrent.futures._base configparser copy csv dataclasses decimal"
    " email.errors getopt graphlib http.client ipaddress json.decoder lzma queue re socket sqlite3 ssl statistics"
    " struct subprocess tarfile unicodedata urllib.error uuid xml.etree.ElementTree xml.parsers.expat zipfile zlib".split()
)
_ALIAS = {
    "_functools": "functools", "_operator": "operator", "_collections": "collections", "_heapq": "heapq",
    "_bisect": "bisect", "_struct": "struct", "_queue": "queue", "_csv": "csv", "_socket": "socket",
    "_collections_abc": "collections.abc", "_abc": "abc", "re._constants": "re", "sre_constants": "re",
    "_decimal": "decimal", "_datetime": "datetime", "_statistics": "statistics",
}  # fmt: skip
_TYPE = type


def _resolved(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def name_of(value: Any) -> Optional[Tuple[str, str]]:
    """The name that both sides know `value` by, or None."""
    kind = _TYPE(value)
    if kind.__module__ == "typing":
        name = getattr(value, "_name", None)
        return ("typing", name) if type(name) is str and _resolved("typing", name) is value else None
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if type(module) is not str or type(name) is not str:
        return None
    module = _ALIAS.get(module, module)
    if not _allowed(module, name, value) or _resolved(module, name) is not value:
        return None
    return module, name


def _allowed(module: str, name: str, value: Any) -> bool:
    if any(part.startswith("_") for part in name.split(".")):
        return False
    if module == "builtins":
        return isinstance(value, _TYPE) or name in _PURE_BUILTINS
    if module in _MODULES:
        return True
    return module in _EXCEPTION_MODULES and isinstance(value, _TYPE) and issubclass(value, Exception)


def named(module: Any, name: Any) -> Any:
    """The judge's own value of that name; raises when the name is none of those."""
    if type(module) is not str or type(name) is not str:
        raise ValueError("no name")
    if module != "builtins" and module not in _MODULES and module not in _EXCEPTION_MODULES:
        raise ValueError("not a name that crosses: %s" % module)
    __import__(module)
    found: Any = builtins if module == "builtins" else sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part)
    if not _allowed(module, name, found):
        raise ValueError("not a name that crosses: %s.%s" % (module, name))
    return found


def is_standard(top: str) -> bool:
    """Whether a top-level module name is the standard library's."""
    known = getattr(sys, "stdlib_module_names", None)
    if known is not None:
        return top in known
    if top in sys.builtin_module_names:
        return True
    from _frozen_importlib_external import PathFinder

    folder = builtins.__import__("os").__file__.rpartition("/")[0]
    return PathFinder.find_spec(top, [folder, folder + "/lib-dynload"]) is not None
