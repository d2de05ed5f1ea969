"""What a name means in the judge: a hidden file, a stand-in for the candidate's module, or what the image has.

Modules are never found in a folder that an agent or a candidate could have written to.
"""

from __future__ import annotations

import os
import sys
import types

from _frozen_importlib import BuiltinImporter, FrozenImporter, ModuleSpec, _load
from _frozen_importlib_external import PathFinder, SourceFileLoader, spec_from_file_location

from .names import is_standard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional

_LOCAL = frozenset(
    "__dict__ __class__ __spec__ __loader__ __package__ __path__ __name__ __file__ __doc__ __builtins__ __cached__"
    " __initializing__ __getattribute__ __getattr__ __setattr__ __reduce__ __reduce_ex__ __repr__ __init__".split()
)
_image_path = list(sys.path)


class _Source(SourceFileLoader):
    """Of a hidden file. Its bytecode would lie among the agent's files, and Python takes some unread."""

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def image_spec(top: str) -> Any:
    return (
        BuiltinImporter.find_spec(top) or FrozenImporter.find_spec(top) or PathFinder.find_spec(top, _image_path)
    )


class _Star(str):
    """A name as `from module import *` asks for it: Python hands over the very object that `__all__` holds."""

    __slots__ = ()


class StandInModule(types.ModuleType):
    """A module of the candidate's. What it holds is asked for, and remembered until any of its code has run again."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__":
            return object.__getattribute__(self, "__dict__")["_farm_state"].everything()
        if name in _LOCAL or name.startswith("_farm_"):
            return object.__getattribute__(self, name)
        state = object.__getattribute__(self, "__dict__")["_farm_state"]
        if name == "__all__":
            return state.stars()
        return state.star(name) if type(name) is _Star else state.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        below = isinstance(value, types.ModuleType) and sys.modules.get("%s.%s" % (self.__name__, name)) is value
        if name in _LOCAL or name.startswith("_farm_") or isinstance(value, StandInModule) or below:
            object.__setattr__(self, name, value)
        else:
            self._farm_state.judge.request("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._farm_state.judge.request("delete", self, name)

    def __dir__(self) -> List[str]:
        return self._farm_state.judge.request("operator", "__dir__", self)


class _State:
    def __init__(self, module: StandInModule, imports: Imports) -> None:
        self.module = module
        self.imports = imports
        self.judge = imports.judge
        self._names: List[str] = []
        self._stars: List[str] = []
        self._epoch = -1
        self._values: Dict[str, Any] = {}

    def filled(self, facts: Any) -> None:
        _, names, stars, file, doc, package = facts
        own = object.__getattribute__(self.module, "__dict__")
        self._names = [name for name in names if name not in _LOCAL]
        self._stars = stars
        own["__file__"] = file if type(file) is str else None
        own["__doc__"] = doc if type(doc) is str else None
        if package is not None:
            own["__path__"] = []

    def get(self, name: str) -> Any:
        hidden = self.imports.hidden_below(self.module, name)
        if hidden is not None:
            return hidden
        return self.judge.named(self.judge.request("get", self.module, name), name)

    def everything(self) -> Dict[str, Any]:
        """As `vars(module)` has it, but a copy: what is written there does not arrive."""
        own = object.__getattribute__(self.module, "__dict__")
        return {**own, **dict(self.judge.request("get-many", self.module, self._names))}

    def stars(self) -> List[str]:
        """No name of a built-in function (the check's `abs` and `all` stay Python's), none that the check has bound to
        something of its own unless the task defines it, and none that it never says."""
        import builtins

        judge = self.judge
        known = judge.mentioned
        bound = _globals_of_check()
        names = [
            n
            for n in self._stars
            if not hasattr(builtins, n)
            and (n not in bound or n in judge.declared or n in judge.starred or id(bound[n]) in judge.numbers)
            and (known is None or known(n, True))
        ]
        judge.starred.update(names)
        self._values = {}
        for name, value in self.judge.request("get-many", self.module, names):
            self._values[name] = self.judge.named(value, name)
        self._epoch = self.judge.epoch
        return [_Star(name) for name in names]

    def star(self, name: str) -> Any:
        name = str(name)
        if is_standard(name):
            return __import__(name)
        known = self._values.pop(name, self) if self._epoch == self.judge.epoch else self
        hidden = self.imports.hidden_below(self.module, name)
        return hidden if hidden is not None else self.get(name) if known is self else known


def _globals_of_check() -> Dict[str, Any]:
    """Of the file of the check's whose `from module import *` is at work."""
    frame: Any = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith("/judge/"):
        frame = frame.f_back
    return frame.f_globals if frame is not None else {}


class _Loader:
    def __init__(self, imports: "Imports", path: Optional[str] = None) -> None:
        self._imports = imports
        self._path = path

    def create_module(self, spec: Any) -> Any:
        return self._imports.standin(spec.name)

    def exec_module(self, module: Any) -> None:
        state = module._farm_state
        judge = self._imports.judge
        name = module.__name__
        if self._path is not None:
            facts = judge.request("import-file", name, self._path)
        else:
            facts = judge.request("reload" if hasattr(module, "_farm_loaded") else "import", name)
        module._farm_loaded = True
        state.filled(facts)

    def is_package(self, name: str) -> bool:
        return False

    def get_code(self, name: str) -> Any:
        return None

    def get_source(self, name: str) -> Optional[str]:
        for path in self._imports.files_of(name):
            try:
                with open("/judge/" + path, encoding="utf-8") as file:
                    return file.read()
            except OSError:
                continue
        return None


class Imports:
    """The finders of the judge, and which names are whose."""

    def __init__(self, judge: Any, facts: Dict[str, Any]) -> None:
        self.judge = judge
        self._hidden = {path for path in facts["hidden"] if path.endswith(".py")}
        others = [p for p in {*facts["files"], *facts["own"]} if p.endswith(".py") and p not in self._hidden]
        self._candidates = set(others)
        self._folders = _folders(others)
        self._hidden_folders = _folders(self._hidden)
        self._own = {path for path in facts["own"] if path.endswith(".py")} | _folders(facts["own"])
        self._home = facts["check"].rpartition("/")[0]
        self._roots_for: Any = None
        self._roots: List[str] = []
        self._pending: Dict[str, StandInModule] = {}
        judge.module_of = self.module_of
        judge.added_path = lambda: [("/work/" + root).rstrip("/") for root in self.roots() if root not in self._started]
        # What `python3 FILE` starts with; the rest the other side is told.
        self._started = {self._home + "/" if self._home else ""}

    def install(self) -> None:
        sys.meta_path[:] = [_Front(self), BuiltinImporter, FrozenImporter, _ImagePath(), _Rear(self)]

    def roots(self) -> List[str]:
        """The folders of the task where modules are looked for: the check's own, as a script's, and what it put on its path."""
        path = tuple(entry for entry in sys.path if type(entry) is str and entry not in _image_path)
        if path != self._roots_for:
            full = ["/judge/" + self._home, *map(os.path.abspath, path), "/judge/"]
            inside = [os.path.normpath(entry)[7:] for entry in full if (entry + "/").startswith("/judge/")]
            self._roots = list(dict.fromkeys(root + "/" if root else "" for root in inside))
            self._roots_for = path
        return self._roots

    def is_check_module(self, name: Any) -> bool:
        if name == "__main__":
            return True
        return type(name) is str and any(path in self._hidden for path in self.files_of(name))

    def files_of(self, name: str) -> List[str]:
        stem = name.replace(".", "/")
        return [root + stem + end for root in self.roots() for end in ("/__init__.py", ".py")]

    def hidden_spec(self, name: str) -> Any:
        stem = name.replace(".", "/")
        for root in self.roots():
            full = "/judge/" + root + stem
            if root + stem + "/__init__.py" in self._hidden:
                loader = _Source(name, full + "/__init__.py")
                return spec_from_file_location(name, loader=loader, submodule_search_locations=[full])
            if root + stem + ".py" in self._hidden:
                return spec_from_file_location(name, loader=_Source(name, full + ".py"))
        for root in self.roots():
            if root + stem in self._hidden_folders and not self._is_candidates(name):
                spec = ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = ["/judge/" + root + stem]
                return spec
        return None

    def hidden_below(self, package: types.ModuleType, name: str) -> Any:
        """The hidden module of that name in the folder of a package of the candidate's, whatever it has put there."""
        full = "%s.%s" % (package.__name__, name)
        if not self._hidden_folders or sys.modules.get(package.__name__) is not package:
            return None
        spec = self.hidden_spec(full)
        if spec is None:
            return None
        known = sys.modules.get(full)
        return known if known is not None else _load(spec)

    def _is_candidates(self, name: str) -> bool:
        return any(path in self._candidates for path in self.files_of(name)) or self._is_in(self._folders, name)

    def _is_in(self, folders: Any, name: str) -> bool:
        return any(root + name.replace(".", "/") in folders for root in self.roots())

    def standin_spec(self, name: str, any_top: bool) -> Any:
        top = name.partition(".")[0]
        below = "." in name and isinstance(sys.modules.get(name.rpartition(".")[0]), StandInModule)
        if below or any_top or self._is_in(self._own, top) or any(path in self._own for path in self.files_of(top)):
            if below or self._is_candidates(name):
                return ModuleSpec(name, _Loader(self), is_package=self._is_package(name))
        return None

    def _is_package(self, name: str) -> bool:
        return any(path in self._candidates for path in self.files_of(name)[::2]) or self._is_in(self._folders, name)

    def file_spec(self, name: str, path: str) -> Any:
        return ModuleSpec(name, _Loader(self, path), origin=path)

    def standin(self, name: str) -> StandInModule:
        made = self._pending.pop(name, None) or StandInModule(name)
        if not hasattr(made, "_farm_state"):
            made._farm_state = _State(made, self)
        self._pending[name] = made
        return made

    def module_of(self, judge: Any, name: Any) -> Any:
        """The candidate's module of that name: the one being imported or imported, else another for itself."""
        if type(name) is not str:
            name = "module"
        known = self._pending.get(name) or sys.modules.get(name)
        if isinstance(known, StandInModule) and id(known) not in judge.numbers:
            return known
        made = StandInModule(name)
        made._farm_state = _State(made, self)
        return made


def tops_of(paths: Iterable[str], root: str = "") -> set:
    """The top-level names that these files can be imported by, from a folder of the task."""
    python = [path[len(root) :] for path in paths if path.endswith(".py") and path.startswith(root)]
    return {path[:-3] if "/" not in path else path.partition("/")[0] for path in python}


def _folders(paths: Iterable[str]) -> set:
    found = set()
    for path in paths:
        while "/" in path:
            path = path.rpartition("/")[0]
            found.add(path)
    return found


class _Front:
    def __init__(self, imports: Imports) -> None:
        self._imports = imports

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return self._imports.hidden_spec(name) or self._imports.standin_spec(name, False)


class _Rear(_Front):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return self._imports.standin_spec(name, True)


class _ImagePath:
    """Python's own search, in folders that only the image wrote (a check may add to `sys.path`, an agent to folders)."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return PathFinder.find_spec(name, [entry for entry in (sys.path if path is None else path) if _is_image(entry)])

    def invalidate_caches(self) -> None:
        PathFinder.invalidate_caches()


def _is_image(entry: Any) -> bool:
    if entry in _image_path:
        return True
    try:
        found = os.stat(entry)
    except (OSError, TypeError, ValueError):
        return False
    return found.st_uid == 0 and not found.st_mode & 0o022
