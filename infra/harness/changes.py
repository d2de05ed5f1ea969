"""What a call did to its arguments: mutable ones are compared with a shallow copy, and changed ones sent back whole."""

from __future__ import annotations

from _operator import is_

from .codec import Garbled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, List, Tuple

    _Before = List[Tuple[int, Any, Any]]


def _kind(value: Any) -> str:
    kind = type(value)
    if kind is list:
        return "list"
    if kind is dict:
        return "dict"
    if kind is set:
        return "set"
    if kind is bytearray:
        return "bytearray"
    module = kind.__module__
    if module == "collections":
        if kind.__name__ == "deque":
            return "deque"
        return "dict" if isinstance(value, dict) else ""
    return "file" if module == "_io" and kind.__name__ in ("StringIO", "BytesIO") else ""


def _content(kind: str, value: Any) -> Any:
    if kind in ("list", "deque"):
        return list(value)
    if kind == "dict":
        return dict(dict.items(value))
    if kind == "set":
        return set(value)
    if kind == "bytearray":
        return bytes(value)
    return None if value.closed else (value.getvalue(), value.tell())


def snapshot(seen: List[Any]) -> _Before:
    before: _Before = []
    for number, value in enumerate(seen):
        kind = _kind(value)
        if kind:
            before.append((number, value, _content(kind, value)))
    return before


def changed(before: _Before) -> Iterator[Tuple[int, Any]]:
    for number, value, old in before:
        kind = _kind(value)
        new = _content(kind, value)
        if not _same(kind, old, new):
            yield number, new


def _same(kind: str, old: Any, new: Any) -> bool:
    """By identity of the items, so that nobody's `__eq__` is asked."""
    if kind in ("bytearray", "file"):
        return old == new
    if len(old) != len(new):
        return False
    if kind == "set":
        return set(map(id, old)) == set(map(id, new))
    if kind == "dict":
        return all(map(is_, old, new)) and all(map(is_, old.values(), new.values()))
    return all(map(is_, old, new))


def apply_changes(value: Any, new: Any) -> None:
    kind = _kind(value)
    if kind == "list" and type(new) is list:
        value[:] = new
    elif kind == "deque" and type(new) is list:
        value.clear()
        value.extend(new)
    elif kind == "dict" and type(new) is dict:
        # Not `update`: a Counter's would add.
        value.clear()
        for key, item in new.items():
            value[key] = item
    elif kind == "set" and type(new) is set:
        value.clear()
        value.update(new)
    elif kind == "bytearray" and type(new) is bytes:
        value[:] = new
    elif kind == "file" and (new is None or type(new) is tuple and len(new) == 2):
        _restore(value, new)
    else:
        raise Garbled("an update of another kind")


def _restore(file: Any, state: Any) -> None:
    if state is None:
        file.close()
        return
    content, position = state
    file.seek(0)
    file.truncate()
    file.write(content)
    file.seek(position)
