"""The candidate's side of what belongs to the check: its functions, iterators and objects, each behind a number."""

from __future__ import annotations

import sys

from .codec import Decoder, Encoder
from .names import named
from .operations import OPERATORS, SPECIAL
from .values import made_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional


class Mirror:
    """An object of the check's: attributes and special methods are asked for, one by one."""

    __slots__ = ("_mirrors", "_number", "__weakref__")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self._mirrors.peer.request("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._mirrors.peer.request("set", self, name, value)

    def __repr__(self) -> str:
        return self._mirrors.peer.request("operator", "__repr__", self)

    def __str__(self) -> str:
        return self._mirrors.peer.request("operator", "__str__", self)


def _special(name: str) -> Any:
    def method(self: Mirror, *rest: Any) -> Any:
        return self._mirrors.peer.request("operator", name, self, *rest)

    method.__name__ = name
    return method


def _call(self: Mirror, *args: Any, **kwargs: Any) -> Any:
    return self._mirrors.peer.request("call", self, args, kwargs)


class Mirrors:
    def __init__(self, peer: Any) -> None:
        self.peer = peer
        self._made: Dict[int, Any] = {}
        self._numbers: Dict[int, int] = {}
        self._tuples: Dict[str, type] = {}

    def node(self, encoder: Encoder, value: Any) -> Optional[list]:
        """How something of the check's goes home, or None."""
        number = self._numbers.get(id(value))
        if number is not None:
            return ["J", number]
        for cls in self._tuples.values():
            if type(value) is cls:
                encoder.note(value)
                return ["N", cls.__name__, list(cls._fields), *[encoder.encode(item) for item in value]]
        return None

    def _keep(self, number: int, value: Any) -> Any:
        self._made[number] = value
        self._numbers[id(value)] = number
        return value

    def arrive(self, decoder: Decoder, node: list) -> Any:
        tag = node[0]
        if tag == "g":
            return named_anywhere(node[1], node[2])
        if tag == "v":
            return made_value(decoder, node)
        if tag == "N":
            return self._named_tuple(decoder, node)
        number = node[1]
        if number in self._made:
            if tag == "X":
                decoder.decode(node[3])
            return self._made[number]
        if tag == "j":
            return self._keep(number, self._mirror(number, *node[2:]))
        if tag == "E":
            return self._keep(number, self._exception_class(node))
        return self._keep(number, self._exception(decoder, node))

    def _mirror(self, number: int, kind: str, name: str, special: List[str], doc: Optional[str]) -> Any:
        if kind == "function":

            def function(*args: Any, **kwargs: Any) -> Any:
                return self.peer.request("call", function, args, kwargs)

            function.__name__ = function.__qualname__ = name
            function.__doc__ = doc
            return function
        if kind == "coroutine":

            async def coroutine() -> Any:
                return self.peer.request("await", made)

            made = coroutine()
            return made
        if kind == "generator":

            def generator() -> Any:
                while True:
                    try:
                        value = self.peer.request("operator", "__next__", made)
                    except StopIteration as stop:
                        return stop.value
                    yield value

            made = generator()
            return made
        body: Dict[str, Any] = {n: _special(n) for n in special if n in SPECIAL and n in OPERATORS}
        body["__slots__"] = ()
        if "__call__" in body or kind == "class":
            body["__call__"] = _call
        mirror = type(name, (Mirror,), body)()
        object.__setattr__(mirror, "_mirrors", self)
        object.__setattr__(mirror, "_number", number)
        return mirror

    def _named_tuple(self, decoder: Decoder, node: list) -> Any:
        import collections

        key = "%s(%s)" % (node[1], ",".join(node[2]))
        cls = self._tuples.get(key)
        if cls is None:
            cls = self._tuples[key] = collections.namedtuple(node[1], node[2])  # type: ignore[misc]
        place = decoder.place()
        made = cls(*decoder.rest(node, 3))
        decoder.seen[place] = made
        return made

    def _exception_class(self, node: list) -> type:
        return type(node[2], (named_anywhere("builtins", node[3]),), {})

    def _exception(self, decoder: Decoder, node: list) -> BaseException:
        cls = decoder.decode(node[2])
        args = decoder.decode(node[3])
        try:
            made = cls(*args)
        except Exception:
            made = cls.__new__(cls)
            made.args = args
        return made


def named_anywhere(module: str, name: str) -> Any:
    """The check is trusted: a name of any module that this side has or finds."""
    try:
        return named(module, name)
    except (ValueError, ImportError, AttributeError):
        pass
    __import__(module)
    found: Any = sys.modules[module]
    for part in name.split(".") if name else ():
        found = getattr(found, part)
    return found
