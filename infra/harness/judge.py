"""The judge's side: runs the check, sees the candidate's modules as stand-ins, and alone says how the grade ended."""

from __future__ import annotations

import builtins
import os
import sys
import types

from .codec import Decoder, Encoder, Garbled
from .exports import Exports, named_value
from .peer import Peer
from .raised import RAISED, caught
from .standins import StandInType, make_class, make_exception, make_function, make_generator, make_object
from .values import made_value
from .wire import Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

_REMEMBERED = 5


class Judge(Peer):
    def __init__(self, channel: Channel, ending: Any, is_check_module: Any) -> None:
        super().__init__(channel)
        self.ending = ending
        self.exports = Exports(is_check_module)
        StandInType._farm_judge = self
        # Stand-ins stay for good: one for each object, and `id` stays theirs.
        self.table: Dict[int, Any] = {}
        self.numbers: Dict[int, int] = {}
        self._made: set = set()
        self._mixed: set = set()
        self._misnamed: set = set()
        self.refused: List[str] = []
        self.module_of: Any = None
        self.files: Any = None
        self.mentioned: Any = None
        self.added_path: Any = None
        # What the task says of itself (`names`, `functions`), and what stars of the candidate's have bound.
        self.functions: frozenset = frozenset()
        self.declared: frozenset = frozenset()
        self.starred: set = set()
        self._path_sent: List[str] = []
        self._environ: Dict[Any, Any] = dict(os.environ._data)  # type: ignore[attr-defined]
        self._stdin = sys.stdin
        self._input = builtins.input
        self._input_sent = [False, False]
        self.led_there = self._path_there
        self._led: List[str] = []

    def _path_there(self, text: str) -> str:
        """A path in the check's folder, as the candidate can open it; what comes back of it is the check's again."""
        if text[:7] != "/judge/" and text != "/judge":
            return text
        led = "/work" + text[6:]
        if led not in self._led:
            self._led.append(led)
            self.led_here = self._path_here
        return led

    def _path_here(self, text: str) -> str:
        known = text[:5] == "/work" and any(text == led or text.startswith(led.rstrip("/") + "/") for led in self._led)
        return "/judge" + text[5:] if known else text

    # Kinds of stand-ins.

    def is_standin(self, value: Any) -> bool:
        return isinstance(type(value), StandInType)

    def was_made(self, value: Any) -> bool:
        return id(value) in self._made

    def make(self, value: Any) -> None:
        self._made.add(id(value))

    def is_mixed(self, value: Any) -> bool:
        return id(value) in self._mixed

    def mix(self, value: Any) -> None:
        if id(value) not in self._made:
            self._mixed.add(id(value))

    def named(self, found: Any, name: str) -> Any:
        """A class that the check reached by a name which says class, and by no other (rule.py, 4); not by one that the
        task has for a function."""
        if isinstance(found, StandInType):
            if not name[:1].isupper() or name in self.functions:
                self._misnamed.add(id(found))
            found._farm_named = id(found) not in self._misnamed
        elif type(found) is types.FunctionType and id(found) in self.numbers and self._asks_annotations():
            notes = self.request("get", found, "__annotations__")
            found.__annotations__ = notes if type(notes) is dict else {}
        return caught(found, name)

    def _asks_annotations(self) -> bool:
        said = self.mentioned
        return said is not None and (said("__annotations__") or said("get_type_hints"))

    def was_raised_there(self, error: BaseException) -> bool:
        return "_farm_trace" in error.__dict__

    def raising(self, error: BaseException) -> None:
        error.__dict__.setdefault("_farm_trace", "")

    # Asking.

    def request(self, operation: str, *values: Any) -> Any:
        try:
            return super().request(operation, *values)
        except (StopIteration, StopAsyncIteration) as stop:
            if operation in ("step", "await"):
                raise
            # By identity of the operation first: an object of the candidate's would be asked whether it equals the name.
            if operation == "operator" and values[0] in ("__next__", "__anext__"):
                raise
            # As in a generator (PEP 479): it would end `all(map(f, ...))` early, and count as a pass.
            raise RuntimeError("the candidate's code raised %s" % type(stop).__name__) from stop

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        return self.request("call", function, args, kwargs)

    def is_own_failure(self, raised: Any) -> bool:
        """Whether the check itself has failed in the body of a `with` of the candidate's, which may swallow what it likes
        but that; unless the check has told it of such."""
        error = raised[1] if len(raised) == 3 else None
        if not isinstance(error, (AssertionError, SystemExit)) or self.was_raised_there(error):
            return False
        return not any(isinstance(error, shown) for shown in self.exports.shown)

    def leave(self, raised: Any, ask: Any, awaited: bool = False) -> Any:
        own, shown = self.is_own_failure(raised), self.exports.shown
        try:
            result = ask()
        except Exception:
            if not own:
                raise
            return None
        finally:
            self.exports.shown = shown
        return None if own and not awaited else result

    def leaving(self, callback: Any, is_sync: bool) -> Any:
        """An exit of the candidate's that is no method of a context manager."""
        if is_sync:
            return lambda *raised: self.leave(raised, lambda: callback(*raised))

        async def left(*raised: Any) -> Any:
            return await self.left(raised, lambda: self.leave(raised, lambda: callback(*raised), True))

        return left

    async def left(self, raised: Any, ask: Any) -> Any:
        """What `ask` gives is waited for; it may swallow no failure of the check's either."""
        own = self.is_own_failure(raised)
        try:
            result = await ask()
        except Exception:
            if not own:
                raise
            return None
        return None if own else result

    def step(self, generator: Any, action: str, value: Any) -> Any:
        if action == "send":
            return self.request("step", generator, action, value)
        return None if action == "close" and self.lock.locked() else self.request("step", generator, action, value)

    async def awaited(self, awaitable: Any) -> Any:
        return self.request("await", awaitable)

    def plain(self, value: Any) -> Any:
        base = type(value)._farm_base
        if base in (dict, list, set, bytearray):
            found = self.request("base", value, base.__name__)
            if type(found) is not base:
                self.broken("garbage on the channel")
            return found
        return base(value) if base is not complex else complex(value)

    def refuse(self, text: str) -> BaseException:
        if len(self.refused) < _REMEMBERED:
            self.refused.append(text[:500])
        return TypeError("cannot cross between the check and the candidate's code: " + text)

    def broken(self, why: str) -> None:
        self.ending.lost(why, self)

    # Crossing.

    def opaque(self, encoder: Encoder, value: Any) -> Any:
        number = self.numbers.get(id(value))
        return ["H", number] if number is not None else self.exports.node(encoder, value)

    def exception_node(self, encoder: Encoder, error: BaseException) -> Any:
        number = self.numbers.get(id(error))
        return ["H", number] if number is not None else self.exports.exception_node(encoder, error)

    def keep(self, number: Any, value: Any) -> Any:
        if type(number) is not int or number < 0:
            raise Garbled("no number")
        self.table[number] = value
        self.numbers[id(value)] = number
        return value

    def arrive(self, decoder: Decoder, node: list) -> Any:
        tag = node[0]
        if tag == "v":
            return made_value(decoder, node)
        if tag == "g":
            return named_value(node)
        if tag == "J":
            return self.exports[node[1]]
        if tag == "N":
            return self.exports.made_tuple(decoder, node)
        if tag == "x":
            return self._exception(decoder, node)
        known = self.table.get(node[1])
        # What the candidate hands out is its answer, also if the check made it once (`return self`).
        self._made.discard(id(known))
        if tag == "O":
            cls = decoder.decode(node[2])
            return self.keep(node[1], make_object(cls)) if known is None else known
        if tag == "V":
            cls, plain = decoder.decode(node[2]), decoder.decode(node[3])
            return self.keep(node[1], make_object(cls, plain)) if known is None else known
        if known is not None:
            return known
        if tag == "C":
            return self._class(decoder, node)
        if tag == "F":
            return self.keep(node[1], make_function(self, node[2:]))
        if tag == "G":
            return self.keep(node[1], make_generator(self, node[1]))
        if tag == "K":
            return self.keep(node[1], self._coroutine(node[1]))
        if tag == "M":
            return self.keep(node[1], self.module_of(self, node[2]))
        raise Garbled("an unknown kind")

    def _class(self, decoder: Decoder, node: list) -> Any:
        facts = node[2]
        bases = [decoder.decode(base) for base in facts[5]]
        return self.keep(node[1], make_class(self, node[1], facts, bases))

    def _coroutine(self, number: int) -> Any:
        async def standin() -> Any:
            return self.request("await", made)

        made = standin()
        return made

    def _exception(self, decoder: Decoder, node: list) -> BaseException:
        cls, args = decoder.decode(node[2]), decoder.decode(node[3])
        if type(cls) is type:
            cls = RAISED.get(cls, cls)
        known = self.table.get(node[1]) if node[1] is not None else None
        made = known if known is not None else make_exception(cls, args)
        if node[1] is not None and known is None:
            self.keep(node[1], made)
        for name, value in node[5] or ():
            if name in ("name", "path") and (value is None or type(value) is str):
                setattr(made, name, value)
        made.__dict__["_farm_trace"] = _trace_lines(node[4])
        return made

    # Being asked.

    def perform(self, operation: str, values: List[Any]) -> Any:
        if operation == "call":
            return self.exports.call(*values)
        if operation == "get":
            return self.exports.get(*values)
        if operation == "set":
            return self.exports.set(*values)
        if operation == "operator":
            return self.exports.operator(*values)
        if operation == "input":
            return builtins.input(*values)
        if operation == "stdin" and values[0] in ("read", "readline"):
            return getattr(sys.stdin, values[0])(*values[1:2])
        if operation == "await":
            return self._await(values[0])
        raise TypeError("no such operation")

    def _await(self, coroutine: Any) -> Any:
        """In a thread of its own: this one's loop may be waiting for the candidate."""
        import asyncio
        import threading

        if not isinstance(coroutine, types.CoroutineType):
            raise TypeError("not awaitable from here")
        outcome: List[Any] = []

        def run() -> None:
            try:
                outcome.append((True, asyncio.run(coroutine)))
            except BaseException as error:  # goes to who awaits
                outcome.append((False, error))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        done, value = outcome[0]
        if done:
            return value
        raise value

    def going(self, values: Any) -> None:
        if self.files is not None and self.files.withheld:
            self.files.named_in(values)

    def attach(self) -> Any:
        extra: Dict[str, Any] = {}
        environ: Dict[Any, Any] = os.environ._data  # type: ignore[attr-defined]
        if environ != self._environ:
            self._environ = dict(environ)
            self.going(dict(environ))
            extra["environ"] = dict(os.environ)
        wanted = [sys.stdin is not self._stdin, builtins.input is not self._input]
        if wanted != self._input_sent:
            self._input_sent = extra["input"] = wanted
        path = self.added_path() if self.added_path is not None else []
        if path != self._path_sent:
            self._path_sent = extra["path"] = path
        files = self.files.to_send() if self.files is not None else None
        if files:
            extra["files"] = files
        return extra or None

    def attached(self, extra: Any) -> None:
        """What the candidate printed: into what stands for stdout and stderr here now."""
        for part in extra if type(extra) is list else ():
            if type(part) is not list or len(part) != 2 or type(part[1]) is not str:
                self.broken("garbage on the channel")
            try:
                text = part[1].encode("latin-1").decode("utf-8", "surrogateescape")
                (sys.stderr if part[0] == 2 else sys.stdout).write(text)
            except (UnicodeError, ValueError, OSError, AttributeError):
                pass


def _trace_lines(steps: Any) -> str:
    lines = []
    for step in steps if type(steps) is list else ():
        if type(step) is list and len(step) == 3 and all(type(part) in (str, int) for part in step):
            lines.append('  File "%s", line %s, in %s\n' % tuple(step))
    return "".join(lines)


