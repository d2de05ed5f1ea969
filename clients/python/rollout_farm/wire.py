"""From a trainer's Python values to JSON and back.

numpy and torch values become plain numbers and lists by their own `tolist`, so neither is imported. What JSON cannot
carry is never sent as something else: a NaN is refused, an image is left out.
"""

from __future__ import annotations

import json
import math
from typing import Any, Dict, List, Mapping, Sequence

from .errors import FarmInputError, FarmProtocolError

MAX_DEPTH = 200
# Parts of a message's content that carry no text.
_MEDIA = frozenset({"image", "image_url", "input_image", "video", "video_url", "audio", "input_audio", "audio_url"})


class Unsupported(Exception):
    """A value of a type that JSON has no word for."""


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """The value as JSON would hold it; `where` names it in complaints."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            hint = "drop the field, or say None for what is missing"
            raise FarmInputError(f"{where} is {float(value)}, which JSON cannot carry", hint=hint)
        return float(value)
    if depth > MAX_DEPTH:
        raise FarmInputError(f"{where} is nested deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        return {_name(key, where): plain(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    if is_list(value):
        return [plain(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        return plain(tolist(), where, depth + 1)
    raise Unsupported(f"{type(value).__module__}.{type(value).__qualname__}")


def is_list(value: Any) -> bool:
    """Lists and all that behave so, also those of configuration libraries; text and bytes do not."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _name(key: Any, where: str) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return str(int(key))
    raise Unsupported(f"a key of type {type(key).__name__}")


def text_or_messages(value: Any, where: str) -> Any:
    """A prompt or a completion: text, or messages without their images."""
    if isinstance(value, str):
        return str.__str__(value)
    try:
        if is_list(value):
            return [plain(_without_media(message), f"{where}[{i}]") for i, message in enumerate(value)]
        return plain(value, where)
    except Unsupported as problem:
        hint = "give text, or a list of messages"
        raise FarmInputError(f"{where} holds a {problem}, which JSON cannot carry", hint=hint) from None


def _without_media(message: Any) -> Any:
    if not isinstance(message, Mapping) or not is_list(message.get("content")):
        return message
    content = [p for p in message["content"] if not (isinstance(p, Mapping) and p.get("type") in _MEDIA)]
    return {**message, "content": content}


def encode(value: Any) -> bytes:
    """Pure ASCII: a lone surrogate travels as its escape, and is the farm's to judge."""
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (ValueError, RecursionError) as problem:
        raise FarmInputError(f"the request cannot be written as JSON: {problem}") from None


def decode(body: bytes, what: str) -> Any:
    """JSON as the standard has it: no NaN, no infinity."""
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise FarmProtocolError(f"{what} is not JSON") from None


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def finite(value: Any, where: str) -> float:
    """A reward: a finite number and nothing that only resembles one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FarmProtocolError(f"{where} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FarmProtocolError(f"{where} is not finite")
    return number


def mapping(value: Any, where: str) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise FarmProtocolError(f"{where} is not an object")
    return value


def sequence(value: Any, where: str, length: int) -> List[Any]:
    if not isinstance(value, list):
        raise FarmProtocolError(f"{where} is not a list")
    if len(value) != length:
        raise FarmProtocolError(f"{where} has {len(value)} entries for {length} samples")
    return value
