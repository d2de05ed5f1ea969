"""Special methods by the operation that Python itself would do: reflected operands and NotImplemented included."""

from __future__ import annotations

import _operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict


def _reflected(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda value, other: operation(other, value)


def _copied(value: Any) -> Any:
    import copy

    return copy.copy(value)


def _deeply_copied(value: Any) -> Any:
    import copy

    return copy.deepcopy(value)


def _by_type(name: str) -> Callable[..., Any]:
    def operation(value: Any, *rest: Any) -> Any:
        return getattr(type(value), name)(value, *rest)

    return operation


def _path(value: Any) -> Any:
    import os

    return os.fspath(value)


def _rounded(value: Any, *digits: Any) -> Any:
    return round(value, *digits)


BINARY: Dict[str, str] = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "truediv", "__floordiv__": "floordiv",
    "__mod__": "mod", "__matmul__": "matmul", "__lshift__": "lshift", "__rshift__": "rshift", "__and__": "and_",
    "__or__": "or_", "__xor__": "xor", "__pow__": "pow",
}  # fmt: skip
INPLACE: Dict[str, str] = {
    "__iadd__": "iadd", "__isub__": "isub", "__imul__": "imul", "__itruediv__": "itruediv",
    "__ifloordiv__": "ifloordiv", "__imod__": "imod", "__imatmul__": "imatmul", "__ilshift__": "ilshift",
    "__irshift__": "irshift", "__iand__": "iand", "__ior__": "ior", "__ixor__": "ixor", "__ipow__": "ipow",
}  # fmt: skip
COMPARISONS: Dict[str, str] = {
    "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
}  # fmt: skip
# What tells the judge about the object itself, with no operand of the check's.
PLAIN: Dict[str, Callable[..., Any]] = {
    "__len__": len, "__iter__": iter, "__next__": next, "__reversed__": reversed, "__bool__": bool, "__int__": int,
    "__float__": float, "__complex__": complex, "__index__": _operator.index, "__abs__": abs, "__neg__": _operator.neg,
    "__pos__": _operator.pos, "__invert__": _operator.invert, "__round__": _rounded, "__str__": str, "__repr__": repr,
    "__bytes__": bytes, "__format__": format, "__hash__": hash, "__dir__": dir, "__fspath__": _path,
    "__trunc__": _by_type("__trunc__"), "__floor__": _by_type("__floor__"), "__ceil__": _by_type("__ceil__"),
    "__enter__": _by_type("__enter__"), "__exit__": _by_type("__exit__"), "__getitem__": _operator.getitem,
    "__setitem__": _operator.setitem, "__delitem__": _operator.delitem, "__copy__": _copied,
    "__deepcopy__": _deeply_copied, "__length_hint__": _operator.length_hint, "__missing__": _by_type("__missing__"),
    "__aiter__": _by_type("__aiter__"), "__anext__": _by_type("__anext__"), "__aenter__": _by_type("__aenter__"),
    "__aexit__": _by_type("__aexit__"),
}  # fmt: skip
# A conversion to a number, text or truth: what an object that has met the check's data must not do.
CONVERSIONS = frozenset(
    "__len__ __iter__ __reversed__ __bool__ __int__ __float__ __complex__ __index__ __abs__ __round__ __trunc__"
    " __floor__ __ceil__".split()
)

OPERATORS: Dict[str, Callable[..., Any]] = dict(PLAIN)
for _name, _function in list(BINARY.items()):
    OPERATORS[_name] = getattr(_operator, _function)
    OPERATORS["__r" + _name[2:]] = _reflected(getattr(_operator, _function))
for _name, _function in [*INPLACE.items(), *COMPARISONS.items()]:
    OPERATORS[_name] = getattr(_operator, _function)
OPERATORS["__contains__"] = _operator.contains
OPERATORS["__divmod__"] = divmod
OPERATORS["__rdivmod__"] = _reflected(divmod)
OPERATORS["__call__"] = _by_type("__call__")

# Asked about a class: which of these it defines beyond `object`.
SPECIAL = frozenset(OPERATORS) | {"__await__", "__get__"}
