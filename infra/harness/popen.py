"""`subprocess.Popen` for a check: the command runs on the candidate's side, under its user, in its folder."""

from __future__ import annotations

import io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

_PIPE, _STDOUT, _DEVNULL = -1, -2, -3


class _Raw(io.RawIOBase):
    def __init__(self, judge: Any, number: int, stream: str) -> None:
        self._judge, self._number, self._stream = judge, number, stream

    def readable(self) -> bool:
        return self._stream != "stdin"

    def writable(self) -> bool:
        return self._stream == "stdin"

    def readinto(self, buffer: Any) -> int:
        data = self._judge.request("command", "read", self._number, self._stream, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        return self._judge.request("command", "write", self._number, bytes(data))

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._judge.request("command", "close", self._number, self._stream)


def remote_popen(judge: Any, led: Callable[[Any], Any], subprocess: Any) -> type:
    class Popen:
        def __init__(
            self, args: Any, bufsize: int = -1, executable: Any = None, stdin: Any = None, stdout: Any = None,
            stderr: Any = None, preexec_fn: Any = None, close_fds: bool = True, shell: bool = False, cwd: Any = None,
            env: Any = None, universal_newlines: Any = None, startupinfo: Any = None, creationflags: int = 0,
            restore_signals: bool = True, start_new_session: bool = False, pass_fds: Any = (), *, user: Any = None,
            group: Any = None, extra_groups: Any = None, encoding: Any = None, errors: Any = None, text: Any = None,
            umask: int = -1, pipesize: int = -1, process_group: Any = None,
        ) -> None:  # fmt: skip
            if preexec_fn is not None or pass_fds:
                raise judge.refuse("preexec_fn and pass_fds of a command")
            self.args = args
            self.returncode: Optional[int] = None
            self._text = bool(text or universal_newlines or encoding or errors)
            self._encoding, self._errors = encoding or "utf-8", errors or "strict"
            self._feed: Any = None if stdin is None or isinstance(stdin, int) else stdin.read()
            self._into = [None if f is None or isinstance(f, int) else f for f in (stdout, stderr)]
            streams = [
                stdin if self._feed is None else _PIPE,
                stdout if self._into[0] is None else _PIPE,
                stderr if self._into[1] is None else _PIPE,
            ]
            self._number, self.pid = judge.request(
                "command", "start", led(args), streams, bool(shell), led(cwd), None if env is None else dict(env),
                led(executable), bool(start_new_session),
            )  # fmt: skip
            self.stdin = self._stream("stdin") if stdin == _PIPE else None
            self.stdout = self._stream("stdout") if stdout == _PIPE else None
            self.stderr = self._stream("stderr") if stderr == _PIPE else None

        def __class_getitem__(cls, item: Any) -> Any:
            return cls

        def _stream(self, name: str) -> Any:
            raw = _Raw(judge, self._number, name)
            file: Any = io.BufferedWriter(raw) if name == "stdin" else io.BufferedReader(raw)
            if not self._text:
                return file
            return io.TextIOWrapper(file, self._encoding, self._errors, write_through=name == "stdin")

        def _decoded(self, data: Any) -> Any:
            if data is None or not self._text:
                return data
            return data.decode(self._encoding, self._errors).replace("\r\n", "\n").replace("\r", "\n")

        def _encoded(self, data: Any) -> Any:
            return data.encode(self._encoding, self._errors) if isinstance(data, str) else data

        def communicate(self, input: Any = None, timeout: Any = None) -> Any:
            if self.stdin is not None and not self.stdin.closed:
                self.stdin.flush()
            data = input if input is not None else self._feed
            self._feed = None
            data = self._encoded(data)
            code, out, err = self._timed("communicate", data, timeout)
            self.returncode = code
            results = [self._decoded(out), self._decoded(err)]
            for at, file in enumerate(self._into):
                if file is not None and results[at] is not None:
                    _write(file, results[at])
                    results[at] = None
            return results[0], results[1]

        def _timed(self, operation: str, *rest: Any) -> Any:
            found = judge.request("command", operation, self._number, *rest)
            if found is None:
                raise subprocess.TimeoutExpired(self.args, rest[-1])
            return found

        def poll(self) -> Optional[int]:
            if self.returncode is None:
                self.returncode = judge.request("command", "poll", self._number)
            return self.returncode

        def wait(self, timeout: Any = None) -> int:
            if self.returncode is None:
                if self._feed is not None or any(file is not None for file in self._into):
                    self.communicate(None, timeout)
                else:
                    self.returncode = self._timed("wait", timeout)[0]
            return self.returncode  # type: ignore[return-value]

        def send_signal(self, number: int) -> None:
            judge.request("command", "signal", self._number, int(number))

        def terminate(self) -> None:
            self.send_signal(15)

        def kill(self) -> None:
            self.send_signal(9)

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *raised: Any) -> None:
            for file in (self.stdout, self.stderr, self.stdin):
                if file is not None:
                    try:
                        file.close()
                    except OSError:
                        pass
            self.wait()

        def __repr__(self) -> str:
            return "<Popen: returncode: %s args: %r>" % (self.returncode, self.args)

    return Popen


def _write(file: Any, data: Any) -> None:
    try:
        file.write(data)
    except TypeError:
        file.write(data.encode() if isinstance(data, str) else data.decode())
    file.flush()
