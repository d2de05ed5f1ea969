"""The core: completions in, rewards out, for whatever trainer.

A reward is a finite number that the farm gave to a completed sample; everything else is None with a cause, or an
exception. Answers that are short, long, not finite or not numbers raise.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, TypeVar, Union
from urllib.parse import quote

from .address import parse_address
from .attempts import Abort, Limits
from .errors import FarmInputError, FarmProtocolError, FarmRefused
from .results import follow_results
from .transport import Transport
from .wire import Unsupported, decode, encode, finite, mapping, plain, sequence, text_or_messages

DEFAULT_DEADLINE_S = 300.0
# The farm promises its answer a second after the deadline; the network gets the rest.
GRACE_S = 5.0
T = TypeVar("T")


@dataclass(frozen=True)
class Scores:
    """Rewards in the order asked, and what became of each sample (`status`, `components`, `cause`, …)."""

    rewards: List[Optional[float]]
    outcomes: List[Dict[str, Any]]

    @property
    def causes(self) -> Dict[str, int]:
        """How many samples have no result, by cause."""
        counts: Dict[str, int] = {}
        for outcome in self.outcomes:
            if outcome["status"] == "no_result":
                counts[outcome["cause"]] = counts.get(outcome["cause"], 0) + 1
        return counts

    @property
    def no_result(self) -> int:
        return sum(self.causes.values())


class FarmClient:
    """A farm's gateway. Cheap to make, safe to share between threads, to fork and to pickle."""

    def __init__(self, url: str, *, api_key: Optional[str] = None, deadline_s: float = DEFAULT_DEADLINE_S) -> None:
        address, key = parse_address(url, api_key)
        self.deadline_s = checked_deadline(deadline_s)
        self._transport = Transport(address, key)

    @property
    def url(self) -> str:
        """The farm's URL, without any key."""
        return str(self._transport.address)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, deadline_s={self.deadline_s})"

    def score(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        *,
        config: Optional[str] = None,
        metadata: Optional[Sequence[Optional[Mapping[str, Any]]]] = None,
        env: Optional[Mapping[str, Any]] = None,
        deadline_s: Optional[float] = None,
        on_no_result: str = "null",
        idempotency_key: Optional[str] = None,
        abort: Optional[Abort] = None,
    ) -> Scores:
        """Scores samples by the gateway's config, or in an environment (`{"name", "config", "seed"}`).

        Returns by the deadline with what there is; raises FarmUnavailable if nobody answered until then.
        """
        deadline = self.deadline_s if deadline_s is None else checked_deadline(deadline_s)
        if on_no_result not in ("null", "floor"):
            raise FarmInputError(f"on_no_result is 'null' or 'floor', not {on_no_result!r}")
        call = _Call(
            transport=self._transport,
            common=_common(config, env, on_no_result),
            samples=_samples(prompts, completions, metadata),
            began=time.monotonic(),
            deadline_s=deadline,
            floor=on_no_result == "floor",
            abort=abort or Abort(),
        )
        if not completions:
            return Scores([], [])
        return call.run(0, len(completions), idempotency_key or uuid.uuid4().hex)

    async def score_async(self, prompts: Sequence[Any], completions: Sequence[Any], **options: Any) -> Scores:
        """As `score`, without blocking the event loop. Cancelled, it drops the request."""
        abort = Abort()
        return await in_thread(lambda: self.score(prompts, completions, abort=abort, **options), abort)

    def status(self, run: str, *, deadline_s: float = 30.0) -> Dict[str, Any]:
        """The state of a run, as `farm status RUN --json` shows it."""
        now = time.monotonic()
        limits = Limits(now + deadline_s, now + deadline_s + GRACE_S)
        body = self._transport.send("GET", f"/v1/runs/{quote(run, safe='')}", lambda: None, limits)
        return mapping(decode(body, "the run's state"), "the run's state")

    def results(
        self, run: str, after: Optional[str] = None, follow: bool = True, **options: Any
    ) -> Iterator[Dict[str, Any]]:
        """The run's closed groups, see `iter_results`."""
        return follow_results(self._transport, lambda: self.status(run), run, after, follow, **options)


def iter_results(
    url: str,
    run: str,
    after: Optional[str] = None,
    follow: bool = True,
    *,
    api_key: Optional[str] = None,
    idle_s: float = 60.0,
    patience_s: float = 600.0,
) -> Iterator[Dict[str, Any]]:
    """Group records of a run, each exactly once and in order, from behind the cursor `after`.

    With `follow` it waits for more until the run has ended. A lost connection is taken up again behind the last
    record; after `patience_s` without any answer FarmUnavailable is raised. Keep `record["cursor"]` to go on later.
    """
    return FarmClient(url, api_key=api_key).results(run, after, follow, idle_s=idle_s, patience_s=patience_s)


@dataclass(frozen=True)
class _Call:
    transport: Transport
    common: Dict[str, Any]
    samples: Dict[str, List[Any]]
    began: float
    deadline_s: float
    floor: bool
    abort: Abort

    def run(self, start: int, end: int, key: str) -> Scores:
        """The samples from start to end in one request, or in halves where the farm finds that too large."""
        limits = Limits(self.began + self.deadline_s, self.began + self.deadline_s + GRACE_S)
        rest = encode({**self.common, **{name: column[start:end] for name, column in self.samples.items()}})[1:]

        def body() -> bytes:
            left = self.began + self.deadline_s - time.monotonic()
            return b'{"deadline_ms":%d,%s' % (max(1, math.floor(left * 1000)), rest)

        try:
            data = self.transport.send("POST", "/v1/score", body, limits, {"Idempotency-Key": key}, self.abort)
        except FarmRefused as refusal:
            if refusal.status != 413 or end - start < 2:
                raise
        else:
            return read_scores(data, end - start, self.floor)
        middle = (start + end) // 2
        parts = [(start, middle, f"{key}.0"), (middle, end, f"{key}.1")]
        first, second = together([lambda p=p: self.run(*p) for p in parts])  # type: ignore[misc]
        return Scores(first.rewards + second.rewards, first.outcomes + second.outcomes)


def read_scores(data: bytes, count: int, floor: bool) -> Scores:
    """The answer to `count` samples, or FarmProtocolError: there is no half-understood reward."""
    answer = mapping(decode(data, "the farm's answer"), "the farm's answer")
    rewards = sequence(answer.get("rewards"), "rewards", count)
    outcomes = sequence(answer.get("outcomes"), "outcomes", count)
    read: List[Optional[float]] = []
    for index, (reward, outcome) in enumerate(zip(rewards, outcomes)):
        status = mapping(outcome, f"outcomes[{index}]").get("status")
        if status == "completed" or (status == "no_result" and floor):
            read.append(finite(reward, f"rewards[{index}]"))
        elif status == "no_result":
            if reward is not None:
                raise FarmProtocolError(f"rewards[{index}] is {reward!r} where there is no result")
            read.append(None)
        else:
            raise FarmProtocolError(f"outcomes[{index}].status is {status!r}")
        if status == "no_result" and not isinstance(outcome.get("cause"), str):
            raise FarmProtocolError(f"outcomes[{index}] has no result and no cause")
    return Scores(read, outcomes)


def _common(config: Optional[str], env: Optional[Mapping[str, Any]], on_no_result: str) -> Dict[str, Any]:
    common: Dict[str, Any] = {"on_no_result": on_no_result}
    if config is not None:
        common["config"] = config
    if env is not None:
        try:
            common["env"] = plain(env, "env")
        except Unsupported as problem:
            raise FarmInputError(f"env holds a {problem}, which JSON cannot carry") from None
    return common


def _samples(
    prompts: Sequence[Any], completions: Sequence[Any], metadata: Optional[Sequence[Optional[Mapping[str, Any]]]]
) -> Dict[str, List[Any]]:
    for name, column in (("prompts", prompts), ("completions", completions), ("metadata", metadata)):
        if column is None and name == "metadata":
            continue
        if isinstance(column, (str, bytes, Mapping)) or not hasattr(column, "__len__"):
            raise FarmInputError(f"{name} is a list, not {type(column).__name__}")
        if len(column) != len(completions):  # type: ignore[arg-type]
            counts = f"{len(column)} {name} for {len(completions)} completions"  # type: ignore[arg-type]
            raise FarmInputError(counts, hint="give one of each for every sample")
    samples = {
        "prompts": [text_or_messages(prompt, f"prompts[{i}]") for i, prompt in enumerate(prompts)],
        "completions": [text_or_messages(text, f"completions[{i}]") for i, text in enumerate(completions)],
    }
    if metadata is not None:
        try:
            samples["metadata"] = [plain(entry or {}, f"metadata[{i}]") for i, entry in enumerate(metadata)]
        except Unsupported as problem:
            raise FarmInputError(f"metadata holds a {problem}, which JSON cannot carry") from None
    return samples


def checked_deadline(seconds: Any) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= 86_400:
        raise FarmInputError(f"deadline_s is a number of seconds above 0 and up to 86400, not {seconds!r}")
    return float(seconds)


def together(works: Sequence[Callable[[], T]]) -> List[T]:
    """All of them at once, each in a thread; the first exception counts."""
    done: List[Any] = [None] * len(works)

    def work(index: int) -> None:
        try:
            done[index] = (works[index](), None)
        except BaseException as problem:
            done[index] = (None, problem)

    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(1, len(works))]
    for thread in threads:
        thread.start()
    work(0)
    for thread in threads:
        thread.join()
    for _, problem in done:
        if problem is not None:
            raise problem
    return [value for value, _ in done]


async def in_thread(work: Callable[[], T], abort: Abort) -> T:
    """A thread of its own for a blocking call: the loop's pool is small, and one slow call must not hold up others."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: Union[T, None], problem: Optional[BaseException]) -> None:
        if future.done():
            return
        if problem is not None:
            future.set_exception(problem)
        else:
            future.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        value: Optional[T] = None
        problem: Optional[BaseException] = None
        try:
            value = work()
        except BaseException as caught:
            problem = caught
        try:
            loop.call_soon_threadsafe(settle, value, problem)
        except RuntimeError:
            pass  # the loop has been closed, and nobody waits any more

    threading.Thread(target=run, daemon=True, name="rollout-farm").start()
    try:
        return await future
    except asyncio.CancelledError:
        abort.fire()
        raise
