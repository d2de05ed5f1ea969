"""One folder in two places: the check's is /judge, the candidate's /work, and each must find what the other wrote there.

What the check has written goes along with its next request. What it opens or looks for is asked of the candidate's side
first, as bytes; never a hidden file, and never Python, which only the farm lays into /judge.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CONTAINERS = 1000
_BYTES = 8 * 1024 * 1024


class JudgeFiles:
    def __init__(self, judge: Any, hidden: List[str], withheld: List[str]) -> None:
        self._judge = judge
        # Data of the check's that the candidate gets once the check names it to it.
        self.withheld = list(withheld)
        self._hidden = set(hidden)
        self._written: Dict[str, Tuple[int, int]] = {}
        # By name: what of the candidate's lies here that the farm did not lay.
        self.fetched: Set[str] = set()
        self._busy = False
        self._stat = os.stat

    def install(self) -> None:
        plain = self._stat

        def stat(path: Any, *rest: Any, **options: Any) -> Any:
            try:
                return plain(path, *rest, **options)
            except FileNotFoundError:
                if not self.fetch(path):
                    raise
                return plain(path, *rest, **options)

        os.stat = stat

    def opened(self, path: Any, flags: Any) -> None:
        """Told by the audit hook before a file is opened."""
        name = self._name(path)
        if name is None or self._busy:
            return
        if type(flags) is int and flags & _WRITES:
            self._written.setdefault(name, (0, -1))
            if flags & os.O_TRUNC == 0:
                self.fetch(path)
        else:
            self.fetch(path)

    def _name(self, path: Any) -> Optional[str]:
        try:
            full = os.path.abspath(os.fsdecode(path))
        except (TypeError, ValueError, OSError):
            return None
        name = full[7:] if full.startswith("/judge/") else ""
        if not name or name in self._hidden or name.endswith((".py", ".pyc", ".so")) or "__pycache__" in name:
            return None
        return name

    def fetch(self, path: Any) -> bool:
        name = self._name(path)
        if name is None or self._busy or self._judge.lock.locked():
            return False
        self._busy = True
        try:
            found = self._judge.request("file", name)
            if type(found) is not bytes:
                return False
            full = "/judge/" + name
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(found)
            self.fetched.add(name)
            if name in self._written:
                self._written[name] = self._state(full)
            return True
        except (OSError, TypeError):
            return False
        finally:
            self._busy = False

    def named_in(self, values: Any) -> None:
        texts = list(_texts(values, []))
        folders = {self._folder(text) for text in texts if len(text) < 4096 and "\0" not in text}
        for name in list(self.withheld):
            base = name.rpartition("/")[2]
            if any(base in text for text in texts) or any(name.startswith(folder) for folder in folders if folder):
                self.withheld.remove(name)
                self._written[name] = (0, -1)

    def _folder(self, text: str) -> str:
        full = os.path.abspath(text) + "/"
        return full[full.index("/", 1) + 1 :] if full.startswith(("/judge/", "/work/")) else ""

    def _state(self, full: str) -> Tuple[int, int]:
        found = self._stat(full)
        return found.st_mtime_ns, found.st_size

    def to_send(self) -> List[Any]:
        """Files written by the check since they were last sent. The channel's lock is held: nothing is asked."""
        sent: List[Any] = []
        self._busy = True
        try:
            for name, before in self._written.items():
                full = "/judge/" + name
                try:
                    state = self._state(full)
                    if state == before or state[1] > _BYTES:
                        continue
                    with open(full, "rb") as file:
                        sent.append([name, file.read(_BYTES).decode("latin-1")])
                    self._written[name] = state
                except OSError:
                    continue
        finally:
            self._busy = False
        return sent


def _texts(value: Any, seen: List[int]) -> Iterator[str]:
    """All text in plain data, file names among it."""
    if isinstance(value, str):
        yield str.__str__(value)
    elif type(value) is bytes:
        yield value.decode("latin-1")
    elif isinstance(value, (list, tuple, set, frozenset, dict)):
        if id(value) in seen or len(seen) > _CONTAINERS:
            return
        seen.append(id(value))
        if isinstance(value, dict):
            yield from _texts(list(value.values()), seen)
        for item in list(value):
            yield from _texts(item, seen)
    elif type(value).__module__.startswith("pathlib"):
        yield os.fspath(value)


def take_files(files: Any) -> None:
    """The candidate's side: what the check wrote."""
    for name, text in files:
        try:
            if os.path.dirname(name):
                os.makedirs(os.path.dirname("/work/" + name), exist_ok=True)
            with open("/work/" + name, "wb") as file:
                file.write(text.encode("latin-1"))
        except OSError:
            pass


def read_file(name: str) -> Optional[bytes]:
    full = "/work/" + name
    if not os.path.isfile(full) or os.path.getsize(full) > _BYTES:
        return None
    try:
        with open(full, "rb") as file:
            return file.read(_BYTES)
    except OSError:
        return None
