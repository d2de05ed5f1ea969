"""Plain data to JSON and back, by value. Exact built-in types only: what a class overrides never takes part.

A container is numbered when it is first met (`seen`), so shared references and cycles inside one message, and between
a request and its answer, keep their identity. What is no data is left to the side that holds it (`opaque`, `arrive`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List


_BIG = 1 << 63
_NONE = type(None)
_FLAT = frozenset((_NONE, bool, float, str))
_ATOMS = frozenset((_NONE, bool, float, str))
_NESTED = (list, dict)


class Uncrossable(Exception):
    """A value that cannot cross; the text says what."""


class Garbled(Exception):
    """A node that no honest encoder makes."""


def is_flat(items: Any) -> bool:
    """Whether JSON itself carries every item: found out at C speed, since long lists are mostly this."""
    kinds = set(map(type, items))
    if kinds <= _FLAT:
        return True
    return kinds == {int} and min(items) >= -_BIG and max(items) <= _BIG


class Encoder:
    """One direction of one exchange. `seen` is shared with the Decoder of the same exchange."""

    def __init__(self, seen: List[Any], opaque: Callable[["Encoder", Any], Any], led: Any = None) -> None:
        self.seen = seen
        # What text becomes on the other side (a path of this side's folder), or None.
        self.led = led
        self.numbers = {id(item): n for n, item in enumerate(seen)}
        self.opaque = opaque

    def note(self, item: Any) -> None:
        self.numbers[id(item)] = len(self.seen)
        self.seen.append(item)

    def encode(self, value: Any) -> Any:
        kind = type(value)
        if kind in _ATOMS:
            return value if kind is not str or self.led is None else self.led(value)
        if kind is int:
            return value if -_BIG <= value <= _BIG else ["i", hex(value)]
        number = self.numbers.get(id(value))
        if number is not None:
            return ["r", number]
        rule = _ENCODE.get(kind)
        return rule(self, value) if rule else self.opaque(self, value)

    def items(self, tag: str, items: Any) -> list:
        flat = is_flat(items) and (self.led is None or str not in set(map(type, items)))
        return [tag, *items] if flat else [tag, *[self.encode(item) for item in items]]

    def pairs(self, tag: str, mapping: dict) -> list:
        node: list = [tag]
        for key, value in list(dict.items(mapping)):
            node.append(self.encode(key))
            node.append(self.encode(value))
        return node


def _plain(tag: str) -> Callable[[Encoder, Any], list]:
    def rule(encoder: Encoder, value: Any) -> list:
        encoder.note(value)
        return encoder.items(tag, value)

    return rule


def _set(tag: str) -> Callable[[Encoder, Any], list]:
    def rule(encoder: Encoder, value: Any) -> list:
        encoder.note(value)
        return encoder.items(tag, list(value))

    return rule


def _dict(encoder: Encoder, value: dict) -> list:
    encoder.note(value)
    return encoder.pairs("d", value)


def _bytearray(encoder: Encoder, value: bytearray) -> list:
    encoder.note(value)
    return ["B", value.decode("latin-1")]


_ENCODE: Dict[type, Callable[[Encoder, Any], Any]] = {
    list: _plain("l"),
    tuple: _plain("t"),
    set: _set("s"),
    frozenset: _set("f"),
    dict: _dict,
    bytes: lambda _, value: ["b", value.decode("latin-1")],
    bytearray: _bytearray,
    complex: lambda _, value: ["c", value.real, value.imag],
    range: lambda e, value: ["R", e.encode(value.start), e.encode(value.stop), e.encode(value.step)],
    slice: lambda e, value: ["S", e.encode(value.start), e.encode(value.stop), e.encode(value.step)],
    type(Ellipsis): lambda _, value: ["e"],
    type(NotImplemented): lambda _, value: ["n"],
}


class Decoder:
    """The other direction: numbers containers in the same order as the encoder did."""

    def __init__(self, seen: List[Any], arrive: Callable[["Decoder", list], Any], led: Any = None) -> None:
        self.seen = seen
        self.led = led
        self.arrive = arrive

    def decode(self, node: Any) -> Any:
        if type(node) is not list:
            if type(node) is dict:
                raise Garbled("an object")
            return node if type(node) is not str or self.led is None else self.led(node)
        if not node or type(node[0]) is not str:
            raise Garbled("no tag")
        rule = _DECODE.get(node[0])
        return rule(self, node) if rule else self.arrive(self, node)

    def rest(self, node: list, start: int = 1) -> list:
        items = node[start:]
        kinds = set(map(type, items))
        if list in kinds or dict in kinds or self.led is not None and str in kinds:
            return [self.decode(item) for item in items]
        return items

    def place(self) -> int:
        """Keeps the number of a container that can be made only when its items are there."""
        self.seen.append(_UNMADE)
        return len(self.seen) - 1

    def fill(self, mapping: dict, node: list, start: int = 1) -> dict:
        items = self.rest(node, start)
        if len(items) % 2:
            raise Garbled("a key without a value")
        for at in range(0, len(items), 2):
            mapping[items[at]] = items[at + 1]
        return mapping


_UNMADE = object()


def _list(decoder: Decoder, node: list) -> list:
    made: list = []
    decoder.seen.append(made)
    made.extend(decoder.rest(node))
    return made


def _made_set(decoder: Decoder, node: list) -> set:
    made: set = set()
    decoder.seen.append(made)
    made.update(decoder.rest(node))
    return made


def _made_dict(decoder: Decoder, node: list) -> dict:
    made: dict = {}
    decoder.seen.append(made)
    return decoder.fill(made, node)


def _later(kind: Callable[[list], Any]) -> Callable[[Decoder, list], Any]:
    def rule(decoder: Decoder, node: list) -> Any:
        place = decoder.place()
        made = kind(decoder.rest(node))
        decoder.seen[place] = made
        return made

    return rule


def _seen(decoder: Decoder, node: list) -> Any:
    made = decoder.seen[_number(node[1])]
    if made is _UNMADE:
        raise Garbled("a cycle through something immutable")
    return made


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise Garbled("no number")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise Garbled("no text")
    return value


def _made_bytearray(decoder: Decoder, node: list) -> bytearray:
    made = bytearray(_text(node[1]).encode("latin-1"))
    decoder.seen.append(made)
    return made


def _three(kind: Callable[..., Any]) -> Callable[[Decoder, list], Any]:
    return lambda decoder, node: kind(*[decoder.decode(item) for item in node[1:4]])


_DECODE: Dict[str, Callable[[Decoder, list], Any]] = {
    "i": lambda _, node: int(_text(node[1]), 16),
    "r": _seen,
    "l": _list,
    "t": _later(tuple),
    "s": _made_set,
    "f": _later(frozenset),
    "d": _made_dict,
    "b": lambda _, node: _text(node[1]).encode("latin-1"),
    "B": _made_bytearray,
    "c": lambda _, node: complex(float(node[1]), float(node[2])),
    "R": _three(range),
    "S": _three(slice),
    "e": lambda _, node: Ellipsis,
    "n": lambda _, node: NotImplemented,
}
