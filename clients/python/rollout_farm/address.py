"""Where the farm is, and the key that opens it.

The key may stand in the URL (`http://any:KEY@farm:8787`), be given as an argument, or lie in FARM_API_KEY. It is
taken out of the URL at once: no URL that this package shows, keeps or pickles has user information in it.
"""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple
from urllib.parse import SplitResult, unquote, urlsplit

from .errors import FarmInputError

KEY_VARIABLE = "FARM_API_KEY"

# Keys that objects of this process were pickled with, so that a copy made here finds its key again. A process
# that was spawned does not inherit it, and reads FARM_API_KEY instead: a key never travels in a pickle.
_kept: Dict[str, str] = {}


class Key:
    """A key that shows itself to nobody but the request's header."""

    __slots__ = ("_value", "_handle")

    def __init__(self, value: Optional[str] = None) -> None:
        self._value = None if value is None else _checked(value, "the key")
        self._handle: Optional[str] = None

    def reveal(self) -> Optional[str]:
        """The key for a header: the given one, else the first of FARM_API_KEY, else none."""
        if self._value is not None:
            return self._value
        first = next((part for part in os.environ.get(KEY_VARIABLE, "").split(",") if part.strip()), None)
        return None if first is None else _checked(first, KEY_VARIABLE)

    def scrub(self, text: str) -> str:
        """The text without the key, whoever put it there."""
        secret = self.reveal()
        return text.replace(secret, "***") if secret else text

    def __repr__(self) -> str:
        return "Key(***)"

    def __reduce__(self) -> Any:
        if self._value is None:
            return (Key, ())
        if self._handle is None:
            self._handle = uuid.uuid4().hex
        _kept[self._handle] = self._value
        return (_restored, (self._handle,))


def _restored(handle: str) -> Key:
    key = Key(_kept.get(handle))
    key._handle = handle
    return key


def _checked(value: str, source: str) -> str:
    value = value.strip()
    if not value or not re.fullmatch(r"[\x20-\x7e]+", value):
        raise FarmInputError(f"{source} is empty or has a character that no header can carry", code="key_invalid")
    return value


@dataclass(frozen=True)
class Address:
    scheme: str
    host: str
    port: int
    prefix: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"


def parse_address(url: str, api_key: Optional[str] = None) -> Tuple[Address, Key]:
    """Splits a farm's URL. An argument counts before the URL's password, that before the environment."""
    hint = "write it as http://HOST:PORT or https://HOST, a key as http://any:KEY@HOST (percent-encoded)"
    if not isinstance(url, str):
        raise FarmInputError(f"the farm's URL is text, not {type(url).__name__}", code="url_invalid", hint=hint)
    # The parts may hold a key, so the complaint never quotes them, nor has the exception that does behind it.
    read = _split(url.strip())
    if read is None:
        raise FarmInputError("the farm's URL cannot be read", code="url_invalid", hint=hint)
    parts, host, port, secret = read
    if parts.scheme not in ("http", "https") or not host or not re.fullmatch(r"[A-Za-z0-9._:%-]+", host):
        raise FarmInputError("the farm's URL needs http or https and a host", code="url_invalid", hint=hint)
    if parts.query or parts.fragment or not re.fullmatch(r"[\x21-\x7e]*", parts.path):
        raise FarmInputError("the farm's URL ends with its path", code="url_invalid", hint=hint)
    if api_key is None and secret is not None:
        api_key = unquote(secret)
    port = port or (443 if parts.scheme == "https" else 80)
    return Address(parts.scheme, host, port, parts.path.rstrip("/")), Key(api_key)


def _split(url: str) -> Optional[Tuple[SplitResult, Optional[str], Optional[int], Optional[str]]]:
    try:
        parts = urlsplit(url)
        return parts, parts.hostname, parts.port, parts.password or None
    except ValueError:
        return None
