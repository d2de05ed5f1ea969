"""What of the check's the candidate may touch: functions to be called, iterators to be drawn from, objects of classes
that the check itself defines. Never what leads further: no underscored name, no code, no frame, no module.
"""

from __future__ import annotations

import sys
import types

from .codec import Encoder, Garbled, Uncrossable
from .lent import Lent
from .names import named
from .operations import OPERATORS, SPECIAL
from .raised import RAISED, built_in
from .values import value_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List

_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)
_FORBIDDEN = frozenset("__getattr__ __setattr__ __delattr__ __dict__ __class__ __reduce__ __get__ __dir__".split())


class Exports:
    def __init__(self, is_check_module: Callable[[str], bool]) -> None:
        self._is_check_module = is_check_module
        self._lent = Lent()
        self._tuples: Dict[str, type] = {}
        # The exceptions by which a check fails and of which it has told the candidate (`solution.suppress(Exception)`).
        self.shown: frozenset = frozenset()

    def __getitem__(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._lent):
            raise Garbled("nothing that was lent")
        return self._lent[number]

    def node(self, encoder: Encoder, value: Any) -> Any:
        kind = type(value)
        found = value_node(encoder, value)
        if found is not None:
            return found
        if isinstance(value, type):
            if built_in(value) in RAISED:
                self.shown |= {built_in(value)}
            return self._class(value)
        if isinstance(value, BaseException):
            return self.exception_node(encoder, value)
        if kind is types.TracebackType:
            return None
        if kind is types.ModuleType:
            raise Uncrossable("module %s" % value.__name__)
        if callable(value) or kind.__module__ == "typing":
            name = _global_name(value, self._is_check_module)
            if name:
                return ["g", *name]
        if kind in _FUNCTIONS or kind.__module__ == "functools":
            return self._lend(value, "function", [])
        if kind is types.CoroutineType:
            return self._lend(value, "coroutine", [])
        if isinstance(value, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
            self._tuples["%s(%s)" % (kind.__name__, ",".join(kind._fields))] = kind
            encoder.note(value)
            return ["N", kind.__name__, list(kind._fields), *[encoder.encode(item) for item in value]]
        if self.is_open(value):
            return self._lend(value, "object", _special(kind))
        for base in (int, float, str, bytes, complex):
            if isinstance(value, base):
                return encoder.encode(base(value) if base is not str else str.__str__(value))
        if hasattr(kind, "__next__") and hasattr(kind, "__iter__"):
            return self._lend(value, "generator", [])
        raise Uncrossable("a %s.%s" % (kind.__module__, kind.__qualname__))

    def _lend(self, value: Any, kind: str, special: List[str]) -> list:
        name = getattr(value, "__name__", None) or type(value).__name__
        doc = getattr(value, "__doc__", None) if kind == "function" else None
        shown = name if type(name) is str else "function"
        return ["j", self._lent.number(value), kind, shown, special, doc if type(doc) is str else None]

    def _class(self, value: type) -> list:
        value = built_in(value)
        name = _global_name(value, self._is_check_module)
        if name:
            return ["g", *name]
        if issubclass(value, BaseException):
            builtin = next(base for base in value.__mro__ if base.__module__ == "builtins")
            return ["E", self._lent.number(value), value.__name__, builtin.__name__]
        return self._lend(value, "class", [])

    def exception_node(self, encoder: Encoder, error: BaseException) -> list:
        number = self._lent.number(error)
        cls = self._class(type(error))
        try:
            args: Any = encoder.encode(error.args)
        except Uncrossable:
            args = encoder.encode((str(error),))
        return ["X", number, cls, args]

    def made_tuple(self, decoder: Any, node: list) -> Any:
        fields = node[2] if type(node[2]) is list else []
        cls = self._tuples.get("%s(%s)" % (node[1], ",".join(map(str, fields))))
        if cls is None:
            raise Garbled("a named tuple of nobody's")
        place = decoder.place()
        made = tuple.__new__(cls, decoder.rest(node, 3))
        decoder.seen[place] = made
        return made

    def is_open(self, value: Any) -> bool:
        """Whether attributes of this object are the candidate's to use: of a class of the check's, or a mock."""
        unittest = sys.modules.get("unittest.case")
        if unittest is not None and isinstance(value, unittest.TestCase):
            return False
        for base in type(value).__mro__[:-1]:
            if self._is_check_module(base.__module__):
                return True
        return _is_mock(value)

    def is_open_module(self, module: Any) -> bool:
        return self._is_check_module(module)

    # What the candidate asks.

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        if not self._is_lent(function) or type(args) is not tuple or type(kwargs) is not dict:
            raise TypeError("not callable from here")
        return function(*args, **kwargs)

    def get(self, value: Any, name: Any) -> Any:
        self._check_name(value, name)
        return getattr(value, name)

    def set(self, value: Any, name: Any, new: Any) -> None:
        self._check_name(value, name)
        if callable(getattr(type(value), name, None)):
            raise AttributeError("'%s' is a method of the check's" % name)
        setattr(value, name, new)

    def operator(self, name: Any, value: Any, *rest: Any) -> Any:
        if not self._is_lent(value) or type(name) is not str or name not in OPERATORS:
            raise TypeError("no such operation from here")
        if name in ("__next__", "__iter__", "__repr__", "__str__") or self.is_open(value) and name not in _FORBIDDEN:
            return OPERATORS[name](value, *rest)
        raise TypeError("no such operation from here")

    def _is_lent(self, value: Any) -> bool:
        return value in self._lent

    def _check_name(self, value: Any, name: Any) -> None:
        if type(name) is not str or not self._is_lent(value):
            raise AttributeError("not to be asked from here")
        # A mock's own methods and records are the check's evidence.
        if name.startswith("_") or not self.is_open(value) or _is_mock(value) and hasattr(type(value), name):
            raise AttributeError("'%s' object has no '%s' to be asked from here" % (type(value).__name__, name))


def _is_mock(value: Any) -> bool:
    mock = sys.modules.get("unittest.mock")
    return mock is not None and isinstance(value, mock.NonCallableMock)


def _special(kind: type) -> List[str]:
    found = {name for base in kind.__mro__[:-1] for name in base.__dict__ if name in SPECIAL}
    return sorted(found - _FORBIDDEN - {"__str__", "__repr__", "__hash__", "__await__"})


def _global_name(value: Any, is_check_module: Callable[[str], bool]) -> Any:
    """The check is trusted: any importable function or class that is not its own goes by name."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if type(value).__module__ == "typing":
        module, name = "typing", getattr(value, "_name", None)
    if type(module) is not str or type(name) is not str or is_check_module(module):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is value else None


def named_value(node: list) -> Any:
    return named(node[1], node[2])
