"""The modules that every grade needs, as one file of bytecode: finding them one by one costs as much as running them.

The first nursery of an image makes it, in a child of its own, so that its memory is what every later one's is.
"""

from __future__ import annotations

import marshal
import os
import sys

from _frozen_importlib_external import MAGIC_NUMBER

_PACKAGE = "_rollout_farm"
_ENTRIES = ("nursery", "candidate", "run")
# Loaded by the few grades that want them.
_LATER = ("inprocess", "popen", "commands")


def load() -> None:
    folder = sys.modules[_PACKAGE].__path__[0]
    path = "%s/__pycache__/grade.%s.pyc" % (folder, sys.implementation.cache_tag)
    file = _open(path)
    if file < 0:
        _make(folder, path)
        file = _open(path)
    if file < 0:
        return  # the usual imports do the same
    package = sys.modules[_PACKAGE]
    make = type(sys)
    if os.read(file, len(MAGIC_NUMBER)) == MAGIC_NUMBER:
        # One module after the other: they all use the memory of the first one's text.
        while size := int.from_bytes(os.read(file, 4), "little"):
            name, code = marshal.loads(os.read(file, size))
            if name not in sys.modules:
                module = make(name)
                module.__package__ = _PACKAGE
                module.__file__ = code.co_filename
                sys.modules[name] = module
                exec(code, module.__dict__)
                setattr(package, name.rpartition(".")[2], module)
    os.close(file)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _make(folder: str, path: str) -> None:
    try:
        child = os.fork()
    except OSError:
        return
    if child == 0:
        try:
            _write(folder, path)
        except BaseException:  # no room, or no permission: every start then imports
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)


def _write(folder: str, path: str) -> None:
    sys.dont_write_bytecode = True
    before = set(sys.modules)
    for name in _ENTRIES:
        __import__("%s.%s" % (_PACKAGE, name))
    # A module that has been imported stands behind those that it imports.
    made = []
    for name in [name for name in sys.modules if name not in before and name.startswith(_PACKAGE + ".")]:
        source = "%s/%s.py" % (folder, name.rpartition(".")[2])
        with open(source, "rb") as file:
            one = marshal.dumps((name, compile(file.read(), source, "exec", dont_inherit=True)))
            made.append(len(one).to_bytes(4, "little") + one)
    sys.dont_write_bytecode = False
    for name in _LATER:
        __import__("%s.%s" % (_PACKAGE, name))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb") as file:
        file.write(MAGIC_NUMBER + b"".join(made))
    os.rename(path + ".new", path)
