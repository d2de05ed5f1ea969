"""The candidate's side of commands that a check starts: the real `subprocess`, each process behind a number."""

from __future__ import annotations

import os
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Tuple


class Commands:
    def __init__(self) -> None:
        self._running: List[Any] = []

    def system(self, command: str) -> int:
        return os.system(command)

    def start(
        self, args: Any, streams: List[Any], shell: bool, cwd: Any, env: Any, executable: Any, session: bool
    ) -> Tuple[int, int]:
        started = subprocess.Popen(
            args, bufsize=0, stdin=streams[0], stdout=streams[1], stderr=streams[2], shell=shell, cwd=cwd, env=env,
            executable=executable, start_new_session=session,
        )  # fmt: skip
        self._running.append(started)
        return len(self._running) - 1, started.pid

    def communicate(self, number: int, data: Any, timeout: Any) -> Optional[Tuple[Any, Any, Any]]:
        process = self._running[number]
        try:
            fed = process.stdin is not None and not process.stdin.closed
            out, err = process.communicate(data if fed else None, timeout)
        except subprocess.TimeoutExpired:
            return None
        return process.returncode, out, err

    def wait(self, number: int, timeout: Any) -> Optional[Tuple[int]]:
        try:
            return (self._running[number].wait(timeout),)
        except subprocess.TimeoutExpired:
            return None

    def poll(self, number: int) -> Optional[int]:
        return self._running[number].poll()

    def signal(self, number: int, signal: int) -> None:
        self._running[number].send_signal(signal)

    def read(self, number: int, stream: str, count: int) -> bytes:
        return os.read(getattr(self._running[number], stream).fileno(), count)

    def write(self, number: int, data: bytes) -> int:
        return self._running[number].stdin.write(data)

    def close(self, number: int, stream: str) -> None:
        file = getattr(self._running[number], stream)
        if file is not None and not file.closed:
            file.close()
