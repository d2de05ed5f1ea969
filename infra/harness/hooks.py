"""Where a check reaches past values: commands, seeds, limits, files of code. Each is led to the candidate's side, or,
what would run its bytes in the judge, refused. A module is changed when the check first imports it, never before.
"""

from __future__ import annotations

import os
import sys

from _frozen_importlib import FrozenImporter
from _frozen_importlib_external import PathFinder

from .files import JudgeFiles
from .guard import Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional


class Hooks:
    def __init__(self, judge: Any, imports: Any, facts: Dict[str, Any]) -> None:
        self.judge = judge
        self.imports = imports
        self._files = {*facts["files"], *facts["own"]} - set(facts["hidden"])
        judge.files = JudgeFiles(judge, facts["hidden"], facts["withheld"])
        self._guard = Guard(judge, facts["hidden"], sorted(self._files), self.candidates_file)
        self._modules: Dict[str, Callable[[Any], None]] = {
            "random": self._random,
            "subprocess": self._subprocess,
            "inspect": self._inspect,
            "importlib.util": self._importlib_util,
            "runpy": self._runpy,
            "tempfile": self._tempfile,
            "dataclasses": self._dataclasses,
            "logging.config": self._logging_config,
            "contextlib": self._contextlib,
            "asyncio.unix_events": self._asyncio,
            "multiprocessing.context": self._pools,
            "concurrent.futures.process": self._executor,
        }

    def install(self) -> None:
        for name, change in self._modules.items():
            if name in sys.modules:
                change(sys.modules[name])
        sys.meta_path.insert(1, self)
        set_limit = sys.setrecursionlimit

        def setrecursionlimit(limit: int) -> None:
            set_limit(limit)
            self.judge.request("recursion", limit)

        sys.setrecursionlimit = setrecursionlimit
        os.system = lambda command: self.judge.request("command", "system", self.led(command))
        self.judge.files.install()
        sys.addaudithook(self._guard)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        change = self._modules.get(name)
        if change is None:
            return None
        spec = FrozenImporter.find_spec(name, path) or PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = _Changing(spec.loader, change)
        return spec

    def led(self, value: Any) -> Any:
        """A path of the judge's folder as the candidate has it."""
        if isinstance(value, (list, tuple)):
            return [self.led(item) for item in value]
        if hasattr(value, "__fspath__"):
            value = os.fspath(value)
        if isinstance(value, str):
            return "/work" + value[6:] if value == "/judge" or value.startswith("/judge/") else value
        return value

    def candidates_file(self, path: Any) -> Optional[str]:
        """The path of a candidate's Python file in its own folder, or None."""
        try:
            full = os.path.abspath(os.fsdecode(path))
        except (TypeError, ValueError):
            return None
        relative = os.path.relpath(full, "/work" if full.startswith("/work/") else "/judge")
        return "/work/" + relative if relative in self._files else None

    def _random(self, random: Any) -> None:
        seed = random.seed

        def seeded(*args: Any, **kwargs: Any) -> None:
            seed(*args, **kwargs)
            self.judge.request("seed", *args, *kwargs.values())

        random.seed = seeded

    def _subprocess(self, subprocess: Any) -> None:
        from .popen import remote_popen

        subprocess.Popen = remote_popen(self.judge, self.led, subprocess)

    def _inspect(self, inspect: Any) -> None:
        plain = inspect._signature_from_callable

        def signature(value: Any, **options: Any) -> Any:
            if not (id(value) in self.judge.numbers):
                return plain(value, **options)
            parameters, returns = self.judge.request("signature", value)
            empty = inspect.Parameter.empty
            kinds = (
                inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD,
            )  # fmt: skip
            found = [
                inspect.Parameter(
                    name, kinds[kind], default=default if given else empty, annotation=empty if note is None else note
                )
                for name, kind, given, default, note in parameters
            ]
            return inspect.Signature(found, return_annotation=empty if returns is None else returns)

        inspect._signature_from_callable = signature

    def _importlib_util(self, util: Any) -> None:
        plain = util.spec_from_file_location

        def spec_from_file_location(name: str, location: Any = None, **options: Any) -> Any:
            path = self.candidates_file(location) if location is not None else None
            return self.imports.file_spec(name, path) if path else plain(name, location, **options)

        util.spec_from_file_location = spec_from_file_location

    def _runpy(self, runpy: Any) -> None:
        plain = runpy.run_path

        def run_path(path_name: Any, init_globals: Any = None, run_name: Any = None) -> Any:
            path = self.candidates_file(path_name)
            if path is None:
                return plain(path_name, init_globals, run_name)
            return self.judge.request("run-path", path, run_name or "<run_path>")

        runpy.run_path = run_path

    def _dataclasses(self, dataclasses: Any) -> None:
        """Of an object of the candidate's they read what its own `dataclasses` wrote there."""
        for name in ("fields", "asdict", "astuple", "replace"):

            def asked(value: Any, *rest: Any, _name: str = name, _plain: Any = getattr(dataclasses, name), **more: Any) -> Any:
                if id(value) in self.judge.numbers:
                    return self.judge.request("dataclass", _name, value, rest, more)
                return _plain(value, *rest, **more)

            setattr(dataclasses, name, asked)

    def _contextlib(self, contextlib: Any) -> None:
        """A function of the candidate's that a stack is left by may swallow what a `with` of its may, and no more."""
        judge = self.judge

        def changed(plain: Any, method: str, is_sync: bool) -> Any:
            def push(stack: Any, exit: Any) -> Any:
                manager = any(method in vars(base) for base in type(exit).__mro__)
                own = id(exit) in judge.numbers and not manager
                plain(stack, judge.leaving(exit, is_sync) if own else exit)
                return exit

            return push

        for cls in (contextlib.ExitStack, contextlib.AsyncExitStack):
            cls.push = changed(cls.push, "__exit__", True)
        cls.push_async_exit = changed(cls.push_async_exit, "__aexit__", False)

    def _asyncio(self, events: Any) -> None:
        """It waits for children of its own, and would read any end into one that is not."""

        async def refused(*_: Any, **__: Any) -> None:
            raise self.judge.refuse("a command that asyncio starts; one by subprocess is led to the candidate's side")

        events._UnixSelectorEventLoop._make_subprocess_transport = refused

    def _logging_config(self, config: Any) -> None:
        """Settings name what is to be called, and may be the candidate's: its own, the check's, and what logs."""
        import logging

        plain = config.BaseConfigurator.resolve

        def resolve(configurator: Any, name: str) -> Any:
            found = plain(configurator, name)
            logs = isinstance(found, type) and issubclass(found, (logging.Filterer, logging.Formatter))
            own = id(found) in self.judge.numbers or self.imports.is_check_module(getattr(found, "__module__", None))
            if callable(found) and not logs and not own:
                raise self.judge.refuse("settings that ask for %s" % name)
            return found

        config.BaseConfigurator.resolve = resolve

    def _pools(self, context: Any) -> None:
        """One channel has no place for many processes at once: their work is the candidate's anyway."""

        def pool(_: Any, processes: Any = None, initializer: Any = None, initargs: Any = (), tasks: Any = None) -> Any:
            from multiprocessing.pool import ThreadPool

            return ThreadPool(processes, initializer, initargs)

        context.BaseContext.Pool = pool
        # Others start Python anew, which would import the candidate's files as the judge.
        context._concrete_contexts.update(dict.fromkeys(("spawn", "forkserver"), context._concrete_contexts["fork"]))
        context._default_context = context.DefaultContext(context._concrete_contexts["fork"])

    def _executor(self, process: Any) -> None:
        from concurrent.futures import ThreadPoolExecutor

        class ProcessPoolExecutor(ThreadPoolExecutor):
            def __init__(
                self, max_workers: Any = None, mp_context: Any = None, initializer: Any = None, initargs: Any = (), **_: Any
            ) -> None:
                super().__init__(max_workers, "", initializer, initargs)

        process.ProcessPoolExecutor = ProcessPoolExecutor

    def _tempfile(self, tempfile: Any) -> None:
        """What the check makes there is for the candidate's user as well: in a plain run it is one user."""
        tempfile._os = _SharedFiles()


class _SharedFiles:
    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def mkdir(self, path: Any, mode: int = 0o777) -> None:
        os.mkdir(path, mode)
        os.chmod(path, 0o777)

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        fd = os.open(path, flags, mode)
        os.fchmod(fd, 0o666)
        return fd


class _Changing:
    """A loader that has its module changed once it is there."""

    def __init__(self, loader: Any, change: Callable[[Any], None]) -> None:
        self._loader = loader
        self._change = change

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._loader.exec_module(module)
        self._change(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
