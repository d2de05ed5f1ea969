"""The Python client against the real gateway: results followed while gateways die, deadlines, keys, refusals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, List

from rollout_farm import FarmClient, FarmError, FarmRefused, iter_results

from farm import CHECKOUT, decision

URL, KEY = os.environ["FARM_URL"], os.environ["FARM_API_KEY"]
GROUPS, RUN = 300, "interop-results"


def check(name: str, holds: bool, **figures: Any) -> None:
    print(json.dumps({"check": name, "ok": bool(holds), **figures}), flush=True)
    if not holds:
        sys.exit(1)


def refused(call: Any) -> FarmError:
    try:
        call()
    except FarmRefused as refusal:
        return refusal
    raise SystemExit("it was not refused")


def spec(folder: Path) -> Path:
    file = folder / "spec.json"
    tasks = [
        {"id": f"t{i}", "env": "guess", "config": {"low": 1, "high": 9, "max_guesses": 5}, "seed": i}
        for i in range(GROUPS)
    ]
    policy = {"kind": "scripted", "actions": [4, 2, 6, 1]}
    file.write_text(json.dumps({"name": RUN, "group_size": 4, "tasks": tasks, "policy": policy}))
    return file


def gateway(port: int) -> subprocess.Popen[bytes]:
    command = [str(CHECKOUT / "farm"), "serve", "--port", str(port)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, cwd=CHECKOUT
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def follow(folder: Path) -> None:
    """The run is at work; the gateway that is asked is killed again and again, once it is asked to drain."""
    run = subprocess.Popen(
        [str(CHECKOUT / "farm"), "run", str(spec(folder)), "--run-id", RUN, "--workers", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=CHECKOUT,
    )
    client = FarmClient(URL)
    while True:
        try:
            client.status(RUN)
            break
        except FarmRefused:
            if run.poll() is not None:
                raise SystemExit("the run did not start") from None
            time.sleep(0.05)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    current = [gateway(port)]
    over = threading.Event()
    ends: List[str] = []

    def unrest() -> None:
        while not over.wait(0.7):
            sent = signal.SIGTERM if len(ends) == 1 else signal.SIGKILL
            os.killpg(current[0].pid, sent)
            current[0].wait()
            ends.append(sent.name)
            current[0] = gateway(port)

    trouble = threading.Thread(target=unrest)
    trouble.start()
    try:
        records = []
        for record in iter_results(f"http://127.0.0.1:{port}", RUN, patience_s=60):
            records.append(record)
            # As a trainer that takes its time.
            time.sleep(0.01)
    finally:
        over.set()
        trouble.join()
        os.killpg(current[0].pid, signal.SIGKILL)
        current[0].wait()
        run.wait(60)
    cursors = [record["cursor"] for record in records]
    groups = sorted(record["group"] for record in records)
    check(
        "every group once, whatever gateways do",
        groups == list(range(GROUPS)) and len(set(cursors)) == GROUPS,
        gateways_ended=ends,
    )
    plain = list(iter_results(URL, RUN, follow=False))
    check("the same order and content as without trouble", plain == records)
    check("behind any cursor", list(iter_results(URL, RUN, cursors[100])) == records[101:])
    refusal = refused(lambda: list(iter_results(URL, RUN, "elsewhere-1")))
    check("a cursor that is none is refused", refusal.status == 400, said=str(refusal))


def main() -> None:
    client = FarmClient(URL)
    right, wrong = decision("permit"), decision("deny")
    scores = client.score(["p"] * 3, [right, wrong, "\ud800 good \x00"], metadata=[{"gold": "permit"}] * 3)
    check("scores", scores.rewards[0] > scores.rewards[1] > scores.rewards[2], rewards=scores.rewards)
    again = [client.score(["p"], [right], idempotency_key="one").outcomes for _ in range(2)]
    check("an idempotency key is answered once", again[0] == again[1])
    env = {"name": "guess", "config": {"low": 1, "high": 9, "max_guesses": 3}, "seed": 7}
    guesses = client.score(["p"] * 9, [str(n) for n in range(1, 10)], env=env)
    check(
        "in an environment one guess is right",
        sorted(guesses.rewards)[-1] == 1.0 and guesses.rewards.count(1.0) == 1,
        rewards=guesses.rewards,
    )
    began = time.monotonic()
    many = [decision("permit", age=18 + n % 50) for n in range(5000)]
    rewards = client.score(["p"] * 5000, many, metadata=[{"gold": "permit"}] * 5000).rewards
    check("5000 samples in one call", rewards == [scores.rewards[0]] * 5000, seconds=round(time.monotonic() - began, 2))
    began = time.monotonic()
    dead = client.score(["p"], [right], config="dead", deadline_s=1)
    check(
        "a verifier that is away is no result, by the deadline",
        dead.rewards == [None] and time.monotonic() - began < 2.5,
        causes=dead.causes,
    )
    check("a wrong key is refused", refused(lambda: FarmClient(URL, api_key="wrong").score(["p"], ["c"])).status == 401)
    check(
        "an unknown config is refused",
        refused(lambda: client.score(["p"], ["c"], config="nobody")).status in (400, 404),
    )
    check("an unknown run is refused", refused(lambda: client.status("nobody")).status == 404)
    basic = URL.replace("http://", f"http://any:{KEY}@")
    check("the key may stand in the URL", FarmClient(basic).score(["p"], ["c"]).rewards == [-1.0])
    with tempfile.TemporaryDirectory() as folder:
        follow(Path(folder))


main()
