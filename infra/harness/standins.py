"""The judge's stand-ins: for each class of the candidate's a class here, for each object one object, for good.

A stand-in holds a number, no value. Its attributes are asked for; its special methods are those of the candidate's
class, by the rule of who decides.
"""

from __future__ import annotations


from . import rule
from .codec import Garbled
from .operations import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

_VALUE_BASES = {"int": int, "float": float, "complex": complex, "str": str, "bytes": bytes, "tuple": tuple,
                "frozenset": frozenset}  # fmt: skip
_CONTAINER_BASES = {"dict": dict, "list": list, "set": set, "bytearray": bytearray}
# Comparisons by another name: of a list or set of the candidate's they are decided as `==` is (rule.py, 1).
_QUERIES = frozenset("count index issubset issuperset isdisjoint union intersection difference symmetric_difference".split())
_WITH_QUERIES = (list, set, bytearray)
_LOCAL = frozenset(("__class__", "__dict__", "__slots__", "__module__", "__qualname__", "__name__", "__doc__"))
# Python looks for these on any object or class of its own accord: nobody's business to be asked for.
_NEVER = frozenset(
    "__set_name__ __objclass__ __wrapped__ __isabstractmethod__ __abstractmethods__ __getstate__ __reduce__"
    " __array_interface__ __array_struct__ __array__ __orig_class__ __text_signature__ __signature__ __traceback__"
    " __cause__ __context__ __notes__ __suppress_context__ __mro_entries__ __class_getitem__ __init_subclass__"
    " __instancecheck__ __subclasscheck__ _fields __wrapped__ __partialmethod__ __post_init__ __exit__ __aexit__".split()
)


class StandInType(type):
    # The class of stand-in classes: attributes are the candidate's, calling makes an object there.

    _farm_judge: Any = None

    def __new__(mcs, name: str, bases: tuple, body: Dict[str, Any], **_: Any) -> Any:
        if "_farm_number" not in body:
            raise StandInType._farm_judge.refuse("class %s derives from a class of the candidate's" % name)
        return super().__new__(mcs, name, bases, body)

    def __init__(cls, name: str, bases: tuple, body: Dict[str, Any], **_: Any) -> None:
        super().__init__(name, bases, body)

    # The metaclass has it, so that an object may have another: a decorated function has its own.
    __doc__ = property(lambda cls: cls.__dict__.get("_farm_doc"))  # type: ignore[assignment]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        judge = cls._farm_judge
        made = judge.request("call", cls, args, kwargs)
        if cls._farm_named and judge.is_standin(made) and cls in type(made).__mro__:
            judge.make(made)
        return made

    def __getattr__(cls, name: str) -> Any:
        if name in _NEVER or name.startswith("_farm_"):
            raise AttributeError(name)
        found = cls._farm_judge.request("get", cls, name)
        return cls._farm_judge.named(found, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name.startswith("_farm_"):
            type.__setattr__(cls, name, value)
        elif name not in _LOCAL:
            cls._farm_judge.request("set", cls, name, value)

    def __delattr__(cls, name: str) -> None:
        cls._farm_judge.request("delete", cls, name)

    def __iter__(cls) -> Any:
        return cls._farm_judge.request("operator", "__iter__", cls)

    def __len__(cls) -> int:
        return cls._farm_judge.request("operator", "__len__", cls)

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, key: Any) -> Any:
        return cls._farm_judge.request("operator", "__getitem__", cls, key)

    def __contains__(cls, item: Any) -> bool:
        if cls._farm_judge.is_standin(item):
            return isinstance(item, cls)
        return any(found is item or found == item for found in iter(cls))

    def __dir__(cls) -> List[str]:
        return cls._farm_judge.request("operator", "__dir__", cls)

    def __repr__(cls) -> str:
        return "<class '%s.%s'>" % (cls.__module__, cls.__qualname__)


class _Attributes:
    """What every stand-in object does: ask."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in _NEVER or name.startswith("_farm_"):
            raise AttributeError(name)
        judge = type(self)._farm_judge  # type: ignore[attr-defined]
        if name in _QUERIES and type(self)._farm_base in _WITH_QUERIES and not judge.was_made(self):  # type: ignore[attr-defined]
            return getattr(judge.plain(self), name)
        return judge.named(judge.request("get", self, name), name)

    def __setattr__(self, name: str, value: Any) -> None:
        type(self)._farm_judge.request("set", self, name, value)  # type: ignore[attr-defined]

    def __delattr__(self, name: str) -> None:
        type(self)._farm_judge.request("delete", self, name)  # type: ignore[attr-defined]

    def __copy__(self) -> Any:
        return type(self)._farm_judge.request("operator", "__copy__", self)  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)._farm_judge.request("operator", "__deepcopy__", self)  # type: ignore[attr-defined]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle '%s' object: it is the candidate's" % type(self).__name__)

    def __dir__(self) -> List[str]:
        return type(self)._farm_judge.request("operator", "__dir__", self)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return type(self)._farm_judge.request("operator", "__repr__", self)  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return type(self)._farm_judge.request("operator", "__str__", self)  # type: ignore[attr-defined]


class _Object(_Attributes):
    __slots__ = ("__weakref__",)


def make_class(judge: Any, number: int, facts: list, bases: List[type]) -> type:
    name, qualname, module, doc, kind, _, special, fields = facts
    if not all(type(part) is str for part in (name, qualname, module, kind)) or type(special) is not list:
        raise Garbled("a class without a name")
    family, _, base_name = kind.partition(" ")
    wanted = [text for text in special if type(text) is str and (text in OPERATORS or text == "__await__")]
    body: Dict[str, Any] = {
        "_farm_number": number, "_farm_judge": judge, "_farm_kind": family, "_farm_named": False, "_farm_base": None,
        "__module__": module, "__qualname__": qualname, "_farm_doc": doc if type(doc) is str else None,
    }  # fmt: skip
    root: tuple = (_Object,)
    if family == "exception":
        return _exception_class(judge, name, bases, body, wanted)
    body["__slots__"] = ()
    body["__doc__"] = property(lambda self: judge.request("get", self, "__doc__"))
    if base_name in _VALUE_BASES:
        base = _VALUE_BASES[base_name]
        body["_farm_base"] = base
        operators = [text for text in wanted if text in rule.DECIDED] if family == "value" else []
        body.update({text: rule.valued(text, judge, base) for text in operators})
        if "__eq__" in operators:
            body["__hash__"] = base.__hash__
        wanted = [text for text in wanted if text in ("__str__", "__repr__", "__call__", "__enter__", "__exit__")]
        root = (_Attributes, base)
        if base is tuple and fields and all(type(field) is str for field in fields):
            body["_fields"] = tuple(fields)
        for at, field in enumerate(fields if base is tuple else ()):
            # No special method may come in as a field: Python itself would call it.
            if type(field) is str and field.isidentifier() and not field.startswith("_"):
                body[field] = property(lambda self, at=at: tuple.__getitem__(self, at))
    elif base_name in _CONTAINER_BASES:
        body["_farm_base"] = _CONTAINER_BASES[base_name]
        wanted = sorted({*wanted, *[n for n in dir(_CONTAINER_BASES[base_name]) if n in OPERATORS]} - {"__hash__"})
    methods = rule.methods(wanted, judge)
    if family == "enum" and not base_name:
        for unasked in ("__hash__", "__eq__", "__ne__"):
            methods.pop(unasked, None)
    if "__eq__" in methods and "__hash__" not in methods:
        methods["__hash__"] = None  # type: ignore[assignment]
    elif "__hash__" in methods and "unhashable" in special:
        methods["__hash__"] = None  # type: ignore[assignment]
    if "__await__" in wanted:
        methods["__await__"] = lambda self: judge.awaited(self).__await__()
    for awaited in ("__anext__", "__aenter__"):
        if awaited in methods:
            methods[awaited] = _awaited(judge, methods[awaited])
    if "__aexit__" in methods:
        methods["__aexit__"] = _left(judge, methods["__aexit__"])
    body.update(methods)
    body["__bool__"] = body.get("__bool__") or _truth(body)
    if base_name in _CONTAINER_BASES:
        # For `isinstance(found, dict)` alone: it holds nothing that Python's own C code could read past its methods.
        shown = type(name, (_CONTAINER_BASES[base_name],), {"__module__": module, "__qualname__": qualname})
        body["__class__"] = property(lambda self: shown)
    parents = tuple(base for base in bases if isinstance(base, StandInType)) or root
    value_base = _VALUE_BASES.get(base_name)
    if value_base is not None and not any(issubclass(parent, value_base) for parent in parents):
        parents = (*parents, value_base)
    try:
        return StandInType(name, parents, body)
    except TypeError:
        return StandInType(name, root, body)


def _awaited(judge: Any, method: Any) -> Any:
    return lambda self, *rest: judge.awaited(method(self, *rest))


def _left(judge: Any, method: Any) -> Any:
    async def left(self: Any, *rest: Any) -> Any:
        return await judge.left(rest, lambda: judge.awaited(judge.leave(rest, lambda: method(self, *rest), True)))

    return left


def _truth(body: Dict[str, Any]) -> Any:
    """Python would ask for a length; a class without either is true."""
    length = body.get("__len__")
    base = body["_farm_base"]
    if length is None and base is not None and hasattr(base, "__bool__"):
        return base.__bool__
    if length is None and base is not None:
        return lambda self: base.__len__(self) != 0
    return (lambda self: length(self) != 0) if length else (lambda self: True)


def _exception_class(judge: Any, name: str, bases: List[type], body: Dict[str, Any], wanted: List[str]) -> type:
    parents = tuple(base for base in bases if issubclass(base, BaseException)) or (Exception,)
    shown = {text: rule.plain(text, judge) for text in wanted if text in ("__str__", "__repr__")}

    def attribute(self: Any, asked: str) -> Any:
        if asked in _NEVER or asked.startswith("_farm_") or id(self) not in judge.numbers:
            raise AttributeError(asked)
        return judge.request("get", self, asked)

    body.update(shown)
    body["__getattr__"] = attribute
    body["__reduce_ex__"] = _Attributes.__reduce_ex__
    try:
        return StandInType(name, parents, body)
    except TypeError:
        return StandInType(name, (Exception,), body)


def make_object(cls: Any, plain: Any = None) -> Any:
    if not isinstance(cls, StandInType):
        raise Garbled("an object of no class")
    base = cls._farm_base
    if base is not None and base in _VALUE_BASES.values():
        if type(plain) is not base:
            raise Garbled("a value of another kind")
        return base.__new__(cls, plain.real, plain.imag) if base is complex else base.__new__(cls, plain)
    if cls._farm_kind == "exception":
        raise Garbled("an exception that is none")
    return object.__new__(cls)


def make_exception(cls: Any, args: Any) -> BaseException:
    if not (isinstance(cls, type) and issubclass(cls, BaseException)) or type(args) is not tuple:
        raise Garbled("an exception of no class")
    if isinstance(cls, StandInType):
        made = cls.__new__(cls, *args) if not issubclass(cls, OSError) else cls.__new__(cls)
    else:
        try:
            made = cls(*args)
        except Exception:
            made = cls.__new__(cls)
    made.args = args
    return made


def make_function(judge: Any, facts: list) -> Any:
    """A real function, so that `inspect`, `callable` and patches see one."""

    def standin(*args: Any, **kwargs: Any) -> Any:
        return judge.call(standin, args, kwargs)

    name, qualname, module, doc, path, line = facts
    standin.__name__ = name if type(name) is str else "function"
    standin.__qualname__ = qualname if type(qualname) is str else standin.__name__
    standin.__module__ = module if type(module) is str else None  # type: ignore[assignment]
    standin.__doc__ = doc if type(doc) is str else None
    if type(path) is str and type(line) is int and 0 < line < 1 << 30:
        standin.__code__ = standin.__code__.replace(co_filename=path, co_firstlineno=line)
    return standin


def make_generator(judge: Any, number_of: Any) -> Any:
    """A real generator whose steps are the candidate's."""

    def steps() -> Any:
        action, value = "send", None
        while True:
            try:
                got = judge.step(made, action, value)
            except StopIteration as stop:
                return stop.value
            try:
                action, value = "send", (yield got)
            except GeneratorExit:
                judge.step(made, "close", None)
                raise
            except BaseException as error:
                action, value = "throw", error

    made = steps()
    return made
