"""What can go wrong, each with a code, what happened, and the next step.

No exception here ever carries the key, and every one survives pickling, because trainers carry exceptions
between processes.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Type


class FarmError(Exception):
    """Base of all errors of this package."""

    default_code = "error"

    def __init__(
        self, message: str, *, code: Optional[str] = None, hint: Optional[str] = None, status: Optional[int] = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        #: The next step, in one sentence.
        self.hint = hint
        #: The HTTP status, where a server answered.
        self.status = status

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.code}: {self.message}{hint}"

    def __reduce__(self) -> Any:
        return (_rebuild, (type(self), dict(self.__dict__)))


def _rebuild(kind: Type[FarmError], state: Dict[str, Any]) -> FarmError:
    error = kind.__new__(kind)
    Exception.__init__(error, state["message"])
    error.__dict__.update(state)
    return error


class FarmInputError(FarmError, ValueError):
    """The call itself is unusable: lengths that differ, a NaN, something that JSON cannot carry."""

    default_code = "input_invalid"


class FarmRefused(FarmError):
    """The farm refused the request, and would again: a wrong key, an unknown config, a bad cursor."""

    default_code = "refused"


class FarmUnavailable(FarmError):
    """Nobody answered in time: refused or lost connections, 429 or 5xx until the deadline had passed."""

    default_code = "farm_unavailable"


class FarmProtocolError(FarmError):
    """An answer that breaks the contract. It is never read as a reward."""

    default_code = "protocol"


class NoResult(FarmError):
    """There is no reward for a sample, and `cause` says why. Raised where a trainer has no word for it."""

    default_code = "no_result"

    def __init__(self, cause: str, detail: str = "", **more: Any) -> None:
        super().__init__(f"{cause}: {detail}" if detail else cause, **more)
        self.cause = cause
        self.detail = detail
