"""The product under test: the stand-in verifier and the gateway, started as a user starts them, and stopped again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, Iterator, List

CHECKOUT = Path(__file__).resolve().parents[2]
KEY = "interop-key-0123456789"
FACTS = {"age": 30, "annual_income": 20000, "resident": True, "active_grant": False}
CONFIG = "domain:\n  platform_id: 1\n  base_url: {url}\nverifier:\n  floor: -1.0\n"
START_S = 120


def decision(classification: str, **facts: object) -> str:
    """A completion that the grant rules can judge; the right answer to the default facts is permit."""
    body = {"classification": classification, "facts": {**FACTS, **facts}}
    return f"<decision>{json.dumps(body, separators=(',', ':'))}</decision>"


@contextlib.contextmanager
def farm() -> Iterator[Dict[str, str]]:
    """Yields the gateway's address, key and log. Config `grant` is sound, `dead` has a verifier that is not there."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="farm-interop-")))
        environment = {
            **os.environ,
            "FARM_DATA": str(folder / "data"),
            "FARM_API_KEY": KEY,
            "AMBERTRACE_API_KEY": "at_interop_0123456789",
        }
        for name in ("AMBERTRACE_BASE_URL", "REDIS_URL", "FARM_STORE"):
            environment.pop(name, None)
        start = lambda *args: stack.enter_context(process(list(args), environment, folder))  # noqa: E731
        simulator = start("simulate", "--rulebook", "grant-eligibility")
        for name, url in (("grant", simulator), ("dead", "http://127.0.0.1:1")):
            (folder / f"{name}.yaml").write_text(CONFIG.format(url=url))
        configs = [part for name in ("grant", "dead") for part in ("--config", f"{name}={folder / name}.yaml")]
        url = start("serve", "--port", "0", *configs)
        yield {"FARM_URL": url, "FARM_API_KEY": KEY, "FARM_DATA": environment["FARM_DATA"]}


@contextlib.contextmanager
def rollout_worker() -> Iterator[None]:
    """Beside the farm that a script was given: what is scored in an environment goes there."""
    with tempfile.TemporaryDirectory(prefix="farm-interop-worker-") as folder:
        environment = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
        with process(["worker", "rollout", "--concurrency", "4"], environment, Path(folder)):
            yield


@contextlib.contextmanager
def process(args: List[str], environment: Dict[str, str], folder: Path) -> Iterator[str]:
    """A command of the farm until the block is left; yields its first line, of a worker what it logs when it is ready."""
    log = folder / f"{args[0]}.log"
    with log.open("wb") as stderr:
        command = [str(CHECKOUT / "farm"), *args]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, env=environment, start_new_session=True, cwd=CHECKOUT
        )
        try:
            assert process.stdout is not None
            os.set_blocking(process.stdout.fileno(), False)
            yield _said(process, log, b"ready") if args[0] == "worker" else _first_line(process, log)
        finally:
            _stop(process)


def _first_line(process: subprocess.Popen[bytes], log: Path) -> str:
    """The base URL on stdout means that it is ready."""
    deadline, text = time.monotonic() + START_S, b""
    while b"\n" not in text:
        assert process.stdout is not None
        text += process.stdout.read() or b""
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"{process.args} did not start:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.05)
    return text.decode().split("\n")[0]


def _said(process: subprocess.Popen[bytes], log: Path, word: bytes) -> str:
    deadline = time.monotonic() + START_S
    while word not in log.read_bytes():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"{process.args} did not start:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.05)
    return word.decode()


def _stop(process: subprocess.Popen[bytes]) -> None:
    for sent in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        os.killpg(process.pid, sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    if process.stdout is not None:
        process.stdout.close()
