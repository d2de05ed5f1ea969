"""Value types of the standard library that cross as data. Nothing is imported for them before one is met."""

from __future__ import annotations

import sys

from .codec import Decoder, Encoder, Garbled, Uncrossable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional, Tuple

    _Parts = Callable[[Any], Tuple[Any, ...]]

# Type name as (module, name) -> how an instance is taken apart into parts that cross.


def _zone(value: Any) -> Any:
    zone = value.tzinfo
    if zone is not None and (type(zone).__module__, type(zone).__qualname__) not in _TAKE:
        raise Uncrossable("a time whose time zone is of a class of one's own")
    return zone


_TAKE: Dict[Tuple[str, str], _Parts] = {
    ("decimal", "Decimal"): lambda v: (str(v),),
    ("fractions", "Fraction"): lambda v: (v.numerator, v.denominator),
    ("datetime", "date"): lambda v: (v.year, v.month, v.day),
    ("datetime", "time"): lambda v: (v.hour, v.minute, v.second, v.microsecond, _zone(v), v.fold),
    ("datetime", "datetime"): lambda v: (
        v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, _zone(v), v.fold,
    ),
    ("datetime", "timedelta"): lambda v: (v.days, v.seconds, v.microseconds),
    ("datetime", "timezone"): lambda v: v.__getinitargs__(),
    ("zoneinfo", "ZoneInfo"): lambda v: (v.key,),
    ("uuid", "UUID"): lambda v: (v.int,),
    ("pathlib", "PosixPath"): lambda v: (str(v),),
    ("pathlib", "PurePosixPath"): lambda v: (str(v),),
    ("pathlib._local", "PosixPath"): lambda v: (str(v),),
    ("pathlib._local", "PurePosixPath"): lambda v: (str(v),),
    ("array", "array"): lambda v: (v.typecode, v.tobytes()),
    ("ipaddress", "IPv4Address"): lambda v: (int(v),),
    ("ipaddress", "IPv6Address"): lambda v: (int(v),),
    ("types", "SimpleNamespace"): lambda v: (dict(v.__dict__),),
    ("types", "mappingproxy"): lambda v: (dict(v),),
    ("builtins", "mappingproxy"): lambda v: (dict(v),),
    ("builtins", "dict_keys"): lambda v: (list(v),),
    ("builtins", "dict_values"): lambda v: (list(v),),
    ("builtins", "dict_items"): lambda v: (list(v),),
    ("builtins", "memoryview"): lambda v: (v.tobytes(),),
    ("re", "Pattern"): lambda v: (v.pattern, v.flags),
}

# These are numbered as containers: changes and identity cross.
_CONTAINERS = ("Counter", "OrderedDict", "defaultdict", "deque")

# Importing one of these by the candidate's word has no effect but the import.
_MODULES = frozenset(name for name, _ in _TAKE) | {"collections"}


def value_node(encoder: Encoder, value: Any) -> Optional[list]:
    kind = type(value)
    module, name = kind.__module__, kind.__qualname__
    if module == "collections" and name in _CONTAINERS and _is_own(module, name, kind):
        return _container(encoder, name, value)
    if module == "_io" and name in ("StringIO", "BytesIO") and not value.closed:
        encoder.note(value)
        return ["v", "io", name, encoder.encode(value.getvalue()), value.tell()]
    parts = _TAKE.get((module, name)) if type(module) is str and type(name) is str else None
    if parts is None or module not in ("builtins", "types") and not _is_own(module, name, kind):
        return None
    node: list = ["v", module, name]
    node.extend(encoder.encode(part) for part in parts(value))
    return node


def _is_own(module: str, name: str, kind: type) -> bool:
    return getattr(sys.modules.get(module), name, None) is kind


def _container(encoder: Encoder, name: str, value: Any) -> list:
    encoder.note(value)
    head: list = ["v", "collections", name]
    if name == "deque":
        return [*head, encoder.encode(value.maxlen), *[encoder.encode(item) for item in list(value)]]
    factory = encoder.encode(value.default_factory) if name == "defaultdict" else None
    return [*head, factory, *encoder.pairs("d", value)[1:]]


def made_value(decoder: Decoder, node: list) -> Any:
    module, name = node[1], node[2]
    if type(module) is not str or type(name) is not str:
        raise Garbled("no type")
    if module == "io" and name in ("StringIO", "BytesIO"):
        place = decoder.place()
        file = getattr(sys.modules["io"], name)(decoder.decode(node[3]))
        file.seek(node[4])
        decoder.seen[place] = file
        return file
    if module == "collections" and name in _CONTAINERS:
        return _made_container(decoder, name, node)
    if (module, name) not in _TAKE:
        raise Garbled("no value type")
    parts = [decoder.decode(part) for part in node[3:]]
    if module in ("builtins", "types"):
        return _made_builtin(name, parts)
    if module.startswith("pathlib"):
        module = "pathlib"
    kind = getattr(__import__(module, fromlist=["*"]), name)
    if name in ("time", "datetime"):
        return kind(*parts[:-1], fold=parts[-1])
    if name == "UUID":
        return kind(int=parts[0])
    if name == "Pattern":
        return sys.modules["re"].compile(*parts)
    return kind(*parts)


def _made_builtin(name: str, parts: list) -> Any:
    if name == "SimpleNamespace":
        made = type(sys.implementation)()
        made.__dict__.update(parts[0])
        return made
    if name == "mappingproxy":
        return type(type.__dict__)(parts[0])
    if name == "dict_keys":
        return dict.fromkeys(parts[0]).keys()
    if name == "dict_values":
        return dict(enumerate(parts[0])).values()
    if name == "dict_items":
        return dict(parts[0]).items()
    return memoryview(parts[0])


def _made_container(decoder: Decoder, name: str, node: list) -> Any:
    import collections

    if name == "deque":
        limit = decoder.decode(node[3])
        made: Any = collections.deque(maxlen=limit)
        decoder.seen.append(made)
        made.extend(decoder.rest(node, 4))
        return made
    place = decoder.place()
    factory = decoder.decode(node[3])
    made = collections.defaultdict(factory) if name == "defaultdict" else getattr(collections, name)()
    decoder.seen[place] = made
    return decoder.fill(made, node, 4)
