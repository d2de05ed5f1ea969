"""How the candidate's side names what is no data: each object gets a number once, each class a description once."""

from __future__ import annotations

import sys
import types

from .codec import Encoder, Uncrossable
from .lent import Lent
from .names import name_of
from .operations import SPECIAL
from .values import value_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Set

_mro = type.__dict__["__mro__"].__get__
_dict = type.__dict__["__dict__"].__get__
_VALUES = (int, float, complex, str, bytes, tuple, frozenset)
_CONTAINERS = (dict, list, set, bytearray)
_TEXT = 2000
_TRACE = 12


def _short(value: Any) -> Optional[str]:
    return str.__str__(value)[:_TEXT] if isinstance(value, str) else None


class Describer:
    def __init__(self) -> None:
        self.lent = Lent()
        self._described: Set[int] = set()
        self._fresh: List[int] = []

    def sent(self, arrived: bool) -> None:
        """A description that did not go out (its message could not be made) is to be given again."""
        if not arrived:
            self._described.difference_update(self._fresh)
        self._fresh.clear()

    def node(self, encoder: Encoder, value: Any) -> Any:
        kind = type(value)
        found = value_node(encoder, value)
        if found is not None:
            return found
        if isinstance(value, type):
            name = name_of(value)
            return ["g", *name] if name else self.class_node(encoder, value)
        if issubclass(kind, BaseException):
            return self.exception_node(encoder, value)
        if kind is types.ModuleType:
            return ["M", self.lent.number(value), _short(value.__name__)]
        if kind is types.FunctionType and not value.__dict__ or kind is types.MethodType:
            return ["F", self.lent.number(value), *self._function(value)]
        if kind is types.GeneratorType:
            return ["G", self.lent.number(value), _short(value.__name__)]
        if kind is types.CoroutineType:
            return ["K", self.lent.number(value), _short(value.__name__)]
        if callable(value) or kind.__module__ == "typing":
            name = name_of(value)
            if name:
                return ["g", *name]
        for base in _VALUES:
            if base in _mro(kind):
                return self._valued(encoder, value, kind, base)
        return ["O", self.lent.number(value), self.class_node(encoder, kind)]

    def _function(self, value: Any) -> List[Any]:
        code = getattr(value, "__code__", None)
        place = [_short(code.co_filename), code.co_firstlineno] if isinstance(code, types.CodeType) else [None, 1]
        return [
            _short(getattr(value, "__name__", None)),
            _short(getattr(value, "__qualname__", None)),
            _short(getattr(value, "__module__", None)),
            _short(getattr(value, "__doc__", None)),
            *place,
        ]

    def _valued(self, encoder: Encoder, value: Any, kind: type, base: type) -> Any:
        """An instance of a subclass of something immutable: its plain value, read by the built-in's own methods."""
        if base is bool or base in (tuple, frozenset):
            plain: Any = base(base.__iter__(value))  # type: ignore[attr-defined]
        elif base is int:
            plain = int.__int__(value)
            plain = int.__add__(plain, 0)
        elif base is float:
            plain = float.__add__(value, 0.0) if float.__ne__(value, 0.0) else float.__float__(value)
        elif base is complex:
            plain = complex(complex.__add__(value, 0j))
        elif base is str:
            plain = str.__getitem__(value, slice(None)) if type(value) is str else str.__add__(value, "")
        else:
            plain = bytes.__add__(value, b"")
        if type(plain) is not base:
            raise Uncrossable("a value of %s" % kind.__name__)
        return ["V", self.lent.number(value), self.class_node(encoder, kind), encoder.encode(plain)]

    def class_node(self, encoder: Encoder, cls: type) -> Any:
        number = self.lent.number(cls)
        if id(cls) in self._described:
            return ["C", number]
        self._described.add(id(cls))
        self._fresh.append(id(cls))
        mro = _mro(cls)
        kind = self._kind(cls, mro)
        # What a built-in value does itself, the judge's own does; only what the candidate's classes change is named.
        asked = mro[:-1]
        if "value" in kind:
            asked = [base for base in asked if base.__module__ not in ("builtins", "enum")]
        special = sorted({name for base in asked for name in _dict(base) if name in SPECIAL})
        if _hash(mro) is None:
            special = [*special, "unhashable"]
        bases = []
        for base in cls.__bases__:
            node = self._base(encoder, base)
            if node is not None:
                bases.append(node)
        facts = [
            _short(cls.__name__), _short(cls.__qualname__), _short(cls.__module__), _short(cls.__doc__),
            kind, bases, special,
            list(map(str, getattr(cls, "_fields", ()))) if tuple in mro else [],
        ]  # fmt: skip
        return ["C", number, facts]

    def _kind(self, cls: type, mro: Any) -> str:
        if BaseException in mro:
            return "exception"
        enum = sys.modules.get("enum")
        if enum is not None and enum.Enum in mro:
            return "enum " + next((base.__name__ for base in _VALUES if base in mro), "")
        for base in _VALUES:
            if base in mro:
                return "value " + base.__name__
        for base in _CONTAINERS:
            if base in mro:
                return "container " + base.__name__
        return "object"

    def _base(self, encoder: Encoder, base: type) -> Any:
        name = name_of(base)
        if issubclass(base, BaseException):
            if name:
                return ["g", *name]
            if base.__module__.partition(".")[0] in ("unittest", "_pytest", "pytest", "bdb", "doctest"):
                return ["g", "builtins", "Exception"]
            return self.class_node(encoder, base)
        if name or base.__module__ in ("builtins", "typing", "enum", "abc"):
            return None
        return self.class_node(encoder, base)

    def exception_node(self, encoder: Encoder, error: BaseException) -> Any:
        cls = type(error)
        name = name_of(cls)
        args = BaseException.__dict__["args"].__get__(error)
        if isinstance(error, OSError) and len(args) == 2 and error.filename is not None:
            both = error.filename2 is not None
            args = (*args, error.filename, None, error.filename2) if both else (*args, error.filename)
        try:
            crossed = encoder.encode(tuple(args))
        except Uncrossable:
            crossed = encoder.encode((repr(error)[:_TEXT],))
        trace = _trace(BaseException.__dict__["__traceback__"].__get__(error))
        if name:
            return ["x", None, ["g", *name], crossed, trace, self._facts(encoder, error)]
        return ["x", self.lent.number(error), self.class_node(encoder, cls), crossed, trace, None]

    def _facts(self, encoder: Encoder, error: BaseException) -> Any:
        """What a built-in exception holds beside its arguments."""
        if isinstance(error, ImportError):
            return [["name", _short(error.name)], ["path", _short(error.path)]]
        if isinstance(error, (NameError, AttributeError)) and isinstance(getattr(error, "name", None), str):
            return [["name", _short(error.name)]]
        return None


def _hash(mro: Any) -> Any:
    for base in mro:
        if "__hash__" in _dict(base):
            return _dict(base)["__hash__"]
    return None


def _trace(step: Any) -> List[List[Any]]:
    """File, line and function of the last frames, for the check's report; without the cost of `traceback`."""
    steps: List[List[Any]] = []
    while step is not None and len(steps) < 10_000:
        code = step.tb_frame.f_code
        if "/farm/harness/" not in code.co_filename:
            steps.append([_short(code.co_filename), step.tb_lineno, _short(code.co_name)])
        step = step.tb_next
    return steps[-_TRACE:]


