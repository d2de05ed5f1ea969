"""The exceptions that a check fails by, as the candidate's code raises them: each a subclass of the built-in one.

`except solution.TooPoor` then catches what the candidate raised, and never the `assert False` before it in the check,
whatever class the candidate has put under that name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

_FAILURES = (AssertionError, Exception, BaseException, SystemExit)
RAISED: Dict[type, type] = {
    cls: type(cls.__name__, (cls,), {"__module__": "builtins", "_farm_built_in": cls}) for cls in _FAILURES
}


def caught(found: Any, name: str) -> Any:
    """What `found` means to the check that reached it as `name`; a tuple of classes has none of its own."""
    if type(found) is tuple and not RAISED.keys().isdisjoint(one for one in found if type(one) is type):
        return tuple(RAISED.get(one, one) if type(one) is type else one for one in found)
    if type(found) is type and found in RAISED and found.__name__ != name:
        return RAISED[found]
    return found


def built_in(cls: type) -> type:
    return cls.__dict__.get("_farm_built_in", cls)
