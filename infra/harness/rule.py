"""Who decides. The one place where an operator between an object of the candidate's and anything else is judged.

A check compares what the candidate returns with what it knows. If the candidate's object were asked (`__eq__`), it could
equal everything; if it saw the other operand once, it could become it. Hence:

1. A comparison (==, !=, <, <=, >, >=, in) between the check's data and an object of the candidate's is decided here: for
   a subclass of a built-in, by the built-in value under it; else by identity, and an order is a TypeError.
2. Between two objects of the candidate's its class is asked: both sides are its own doing. Enum members are compared by
   identity, also then.
3. Arithmetic with the check's data is refused (TypeError): `abs(f(x) - expected) < eps` would ask `__sub__`.
4. Except for an object that the check *made* by calling a class which it named as one (reached by a name that begins
   with a capital, and by no other: `solution.Vector(1, 2)`): there the operators are what is being checked, and all are
   asked; what arithmetic makes of it and is of such a class, is made too. A function under test cannot slip in: replaced
   by a class it still has the name that the check wrote, `double`. Once the candidate's code hands it out (a method that
   returns `self`), it is an answer like any other, and made no more.
5. Any other object of a class so named may meet numbers and text in arithmetic if the result is of such a class again
   (`vector.unit() * 3`); that result is *mixed*: it converts to no number, length, truth or sequence any more.
"""

from __future__ import annotations


from .operations import BINARY, COMPARISONS, CONVERSIONS, INPLACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict

    Method = Callable[..., Any]

_SCALARS = (bool, int, float, complex, str, bytes)
_UNDECIDED = NotImplemented


# Operators with a second operand.
DECIDED = frozenset(
    [*COMPARISONS, *BINARY, *INPLACE, *("__r" + name[2:] for name in BINARY), "__divmod__", "__rdivmod__", "__neg__"]
)


def comparison(name: str, judge: Any) -> Method:
    def method(self: Any, other: Any) -> Any:
        mine = type(self)
        if judge.is_standin(other):
            if mine._farm_kind == "enum" or type(other)._farm_kind == "enum":
                return _UNDECIDED
            return judge.request("operator", name, self, other)
        if judge.was_made(self):
            return judge.request("operator", name, self, other)
        base = mine._farm_base
        if base is None:
            return _UNDECIDED
        return getattr(base, name)(judge.plain(self), other)

    return method


def contains(judge: Any) -> Method:
    def method(self: Any, item: Any) -> Any:
        if judge.is_standin(item) or judge.was_made(self):
            return judge.request("operator", "__contains__", self, item)
        base = type(self)._farm_base
        if base is not None:
            return item in judge.plain(self)
        return any(found is item or found == item for found in iter(self))

    return method


def arithmetic(name: str, judge: Any) -> Method:
    def method(self: Any, other: Any, *modulus: Any) -> Any:
        if judge.was_made(self) or judge.was_made(other):
            result = judge.request("operator", name, self, other, *modulus)
            if judge.is_standin(result) and type(result)._farm_named:
                judge.make(result)
            return result
        if judge.is_standin(other) and not judge.is_mixed(self) and not judge.is_mixed(other):
            return judge.request("operator", name, self, other, *modulus)
        if not type(self)._farm_named or not (isinstance(other, _SCALARS) or judge.is_standin(other)):
            raise judge.refuse(_REFUSED % (name, type(self).__name__, type(other).__name__))
        result = judge.request("operator", name, self, other, *modulus)
        if not judge.is_standin(result) or not type(result)._farm_named:
            raise judge.refuse(_REFUSED % (name, type(self).__name__, type(other).__name__))
        judge.mix(result)
        return result

    return method


_REFUSED = (
    "%s of a returned %s with the check's own %s is not asked of the candidate's code: it could answer what pleases"
)


def valued(name: str, judge: Any, base: type) -> Method:
    """Of a subclass of a built-in value: the built-in's operator, unless the check made one of the two."""
    own = getattr(base, name, None)

    def method(self: Any, *rest: Any) -> Any:
        if judge.was_made(self) or rest and judge.was_made(rest[0]):
            result = judge.request("operator", name, self, *rest)
            if judge.is_standin(result) and type(result)._farm_named:
                judge.make(result)
            return result
        return _UNDECIDED if own is None else own(self, *rest)

    return method


def plain(name: str, judge: Any) -> Method:
    guarded = name in CONVERSIONS
    turned = name in _TURNING

    def method(self: Any, *rest: Any) -> Any:
        mixed = judge.is_mixed(self)
        if mixed and (guarded or name == "__format__" and rest != ("",)):
            raise judge.refuse(_MIXED % (name, type(self).__name__))
        entered = name == "__enter__" and judge.was_made(self)
        if name == "__exit__":
            return judge.leave(rest, lambda: judge.request("operator", name, self, *rest))
        result = judge.request("operator", name, self, *rest)
        if mixed and turned:
            if not judge.is_standin(result) or not type(result)._farm_named:
                raise judge.refuse(_MIXED % (name, type(self).__name__))
            judge.mix(result)
        elif entered and result is self:
            judge.make(self)
        return result

    return method


# What an operator without a second operand makes of an object that has met the check's data has met it too.
_TURNING = frozenset(("__neg__", "__pos__", "__invert__"))
_MIXED = "%s of a %s that has met the check's own data"


def methods(special: Any, judge: Any) -> Dict[str, Method]:
    """The special methods of a stand-in class whose candidate's class defines those."""
    found: Dict[str, Method] = {}
    for name in special:
        if name in COMPARISONS:
            found[name] = comparison(name, judge)
        elif name == "__contains__":
            found[name] = contains(judge)
        elif name in DECIDED and name != "__neg__":
            found[name] = arithmetic(name, judge)
        else:
            found[name] = plain(name, judge)
    return found
