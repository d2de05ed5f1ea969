"""The candidate's side: imports its modules when asked, runs calls, and lends out by number what is no data.

Everything here may be turned inside out by the code it runs. That is so by design: whatever it answers is only data
to the judge, and an end of this process, however it comes, is never a pass.
"""

from __future__ import annotations

import builtins
import sys

from .describe import Describer
from .files import read_file, take_files
from .mirrors import Mirrors
from .operations import OPERATORS
from .peer import Peer
from .process import as_started
from .streams import Capture, RemoteInput
from .wire import Channel, Lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List


class Candidate(Peer):
    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.describer = Describer()
        self.mirrors = Mirrors(self)
        self.capture = Capture(self)
        self._loop: Any = None
        self._commands: Any = None

    def serve(self) -> None:
        """Holds the lock while idle: threads of the candidate get the channel only while a call runs."""
        self.lock.acquire()
        while True:
            self._next()

    def opaque(self, encoder: Any, value: Any) -> Any:
        own = self.mirrors.node(encoder, value)
        return own if own is not None else self.describer.node(encoder, value)

    def arrive(self, decoder: Any, node: list) -> Any:
        if node[0] == "H":
            return self.describer.lent[node[1]]
        return self.mirrors.arrive(decoder, node)

    def exception_node(self, encoder: Any, error: BaseException) -> Any:
        own = self.mirrors.node(encoder, error)
        return own if own is not None else self.describer.exception_node(encoder, error)

    def refuse(self, text: str) -> BaseException:
        return TypeError("cannot cross to the check: " + text)

    def attach(self) -> Any:
        return self.capture.taken()

    def sent(self, arrived: bool) -> None:
        self.describer.sent(arrived)

    def attached(self, extra: Any) -> None:
        if extra:
            self._follow(extra)

    def perform(self, operation: str, values: List[Any]) -> Any:
        rule = _PERFORM.get(operation)
        if rule is None:
            raise TypeError("no such operation: %s" % operation)
        return rule(self, *values)

    def _follow(self, extra: Dict[str, Any]) -> None:
        """What the check changed around itself that a plain run would have shared."""
        if "environ" in extra:
            from os import environ

            environ.clear()
            environ.update(extra["environ"])
        if "path" in extra:
            sys.path[:0] = [entry for entry in extra["path"] if entry not in sys.path]
        if "files" in extra:
            take_files(extra["files"])
        if "input" in extra:
            RemoteInput.install(self, extra["input"])

    def run_coroutine(self, awaitable: Any) -> Any:
        import asyncio

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)

        async def wait() -> Any:
            return await awaitable

        return self._loop.run_until_complete(wait())

    def command(self, name: str, *rest: Any) -> Any:
        if self._commands is None:
            from .commands import Commands

            self._commands = Commands()
        return getattr(self._commands, name)(*rest)


def _import(candidate: Candidate, name: str) -> Any:
    __import__(name)
    return _module_facts(sys.modules[name])


def _reload(candidate: Candidate, name: str) -> Any:
    import importlib

    return _module_facts(importlib.reload(sys.modules[name]))


def _import_file(candidate: Candidate, name: str, path: str) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("cannot import %s" % path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return _module_facts(module)


def _module_facts(module: Any) -> Any:
    """The module itself, its public names, and its values as they are now: most checks ask for nothing else."""
    names = [name for name in list(vars(module)) if type(name) is str]
    stars = getattr(module, "__all__", None)
    stars = [n for n in names if not n.startswith("_")] if stars is None else [str(n) for n in stars]
    package = list(module.__path__) if hasattr(module, "__path__") else None
    return module, names, stars, getattr(module, "__file__", None), getattr(module, "__doc__", None), package


def _get_many(candidate: Candidate, module: Any, names: List[str]) -> Any:
    found = []
    for name in names:
        try:
            found.append((name, getattr(module, name)))
        except AttributeError:
            pass
    return found


def _signature(candidate: Candidate, function: Any) -> Any:
    import inspect

    found = inspect.signature(function)
    empty = inspect.Parameter.empty

    def shown(note: Any) -> Any:
        return None if note is empty else note if isinstance(note, (str, type)) else str(note)

    parameters = [
        (p.name, int(p.kind), p.default is not empty, None if p.default is empty else p.default, shown(p.annotation))
        for p in found.parameters.values()
    ]
    return parameters, shown(found.return_annotation)


def _base_value(candidate: Candidate, value: Any, kind: str) -> Any:
    """The data under a subclass of a built-in container, read by the built-in's own methods."""
    if kind == "dict":
        return dict(dict.items(value))
    base = getattr(builtins, kind)
    return base(base.__iter__(value)) if kind != "bytearray" else bytearray(bytes(value))


def _step(candidate: Candidate, generator: Any, action: str, value: Any) -> Any:
    if action == "close":
        return generator.close()
    return generator.send(value) if action == "send" else generator.throw(value)


def _dataclass(candidate: Candidate, name: str, value: Any, rest: Any, more: Any) -> Any:
    import dataclasses

    return getattr(dataclasses, name)(value, *rest, **more)


def _run_path(candidate: Candidate, path: str, run_name: str) -> Any:
    import runpy

    return {name: value for name, value in runpy.run_path(path, run_name=run_name).items() if name[:2] != "__"}


def _seed(candidate: Candidate, *seed: Any) -> None:
    import random

    random.seed(*seed)


_PERFORM: Dict[str, Any] = {
    "import": _import,
    "import-file": _import_file,
    "reload": _reload,
    "get": lambda c, value, name: getattr(value, name),
    "get-many": _get_many,
    "set": lambda c, value, name, new: setattr(value, name, new),
    "delete": lambda c, value, name: delattr(value, name),
    "call": lambda c, function, args, kwargs: function(*args, **kwargs),
    "operator": lambda c, name, *operands: OPERATORS[name](*operands),
    "signature": _signature,
    "base": _base_value,
    "await": lambda c, awaitable: c.run_coroutine(awaitable),
    "file": lambda c, name: read_file(name),
    "step": _step,
    "run-path": _run_path,
    "dataclass": _dataclass,
    "seed": _seed,
    "recursion": lambda c, limit: sys.setrecursionlimit(limit),
    "command": lambda c, name, *rest: c.command(name, *rest),
}


def serve(fd: int, facts: Dict[str, Any]) -> None:
    as_started("/work/" + facts["check"], facts["argv"], facts["tops"])
    candidate = Candidate(Channel(fd))
    candidate.capture.install()
    try:
        candidate.serve()
    except Lost:
        pass
