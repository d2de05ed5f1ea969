"""A reward function for veRL: `reward.custom_reward_function.path=pkg://rollout_farm.verl`.

veRL asks for one sample at a time, all of a batch at once. What comes within a few milliseconds on one event loop
goes to the farm as one request. Where there is no result it raises, which drops the member and keeps its group
(V1); `floor` gives a number instead, for the older trainer that an exception would end.
"""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .client import GRACE_S, FarmClient
from .errors import FarmError, FarmInputError, FarmUnavailable, NoResult
from .trl import warn_left_out
from .wire import Unsupported, encode, finite, plain, text_or_messages

DEADLINE_S = 240.0
WINDOW_MS = 5.0
MAX_BATCH = 256
MAX_REQUESTS = 32
# Prompt, completion, metadata.
Sample = Tuple[Any, Any, Dict[str, Any]]
_batchers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Dict[Any, _Batcher]] = weakref.WeakKeyDictionary()


async def compute_score(
    data_source: Any = None,
    solution_str: Any = "",
    ground_truth: Any = None,
    extra_info: Any = None,
    *,
    url: Optional[str] = None,
    config: Optional[str] = None,
    env: Optional[Mapping[str, Any]] = None,
    api_key: Optional[str] = None,
    deadline_s: float = DEADLINE_S,
    floor: Optional[float] = None,
    window_ms: float = WINDOW_MS,
    reward_router_address: Any = None,
    reward_model_tokenizer: Any = None,
) -> Dict[str, float]:
    """`{"score", "no_result"}`; the keyword arguments are veRL's `reward_kwargs`.

    `ground_truth` becomes metadata `gold`, `extra_info` the rest of it; its `prompt`, if there is one, is the prompt.
    """
    url = url or os.environ.get("FARM_URL")
    if not url:
        hint = "+reward.custom_reward_function.reward_kwargs.url=http://farm:8787"
        raise FarmInputError("compute_score needs the farm's url", code="url_missing", hint=hint)
    stand_in = None if floor is None else _floor(floor)
    sample = read_sample(data_source, solution_str, ground_truth, extra_info)
    environment = None if env is None else encode(plain(env, "env"))
    setting = (url, api_key, config, environment, float(deadline_s), float(window_ms))
    loop = asyncio.get_running_loop()
    batchers = _batchers.setdefault(loop, {})
    if setting not in batchers:
        batchers[setting] = _Batcher(FarmClient(url, api_key=api_key, deadline_s=deadline_s), config, env, window_ms)
    try:
        return {"score": await batchers[setting].score(sample), "no_result": 0.0}
    except NoResult:
        if stand_in is None:
            raise
        return {"score": stand_in, "no_result": 1.0}


def read_sample(data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any) -> Sample:
    """(prompt, completion, metadata), checked here: what one sample holds must not cost the others of its request.

    What JSON cannot carry is left out of the metadata, field by field.
    """
    fields: Dict[Any, Any] = dict(extra_info) if isinstance(extra_info, Mapping) else {}
    if ground_truth is not None:
        fields.setdefault("gold", ground_truth)
    if data_source is not None:
        fields.setdefault("data_source", data_source)
    metadata: Dict[str, Any] = {}
    for name, value in fields.items():
        try:
            metadata.update(plain({name: value}, "extra_info"))
        except Unsupported as problem:
            warn_left_out(f"extra_info.{name}", str(problem))
    completion = text_or_messages(solution_str, "solution_str")
    if "prompt" in metadata:
        return _textual(metadata["prompt"]), completion, metadata
    # The older trainer adds the chat under this name; there it would only repeat the prompt.
    return _textual(metadata.pop("raw_prompt", "")), completion, metadata


def _textual(prompt: Any) -> Any:
    messages = isinstance(prompt, list) and all(isinstance(message, dict) for message in prompt)
    return prompt if messages or isinstance(prompt, str) else str(prompt)


def _floor(value: Any) -> float:
    try:
        return finite(value, "floor")
    except FarmError as problem:
        raise FarmInputError(problem.message) from None


class _Batcher:
    """The samples of one event loop that want the same config from the same farm."""

    def __init__(
        self, client: FarmClient, config: Optional[str], env: Optional[Mapping[str, Any]], window_ms: float
    ) -> None:
        self._client = client
        self._config = config
        self._env = env
        self._window_s = window_ms / 1000
        self._waiting: List[Tuple[float, Any, asyncio.Future[float]]] = []
        self._timer: Optional[asyncio.TimerHandle] = None
        self._requests: set[asyncio.Task[None]] = set()

    async def score(self, sample: Sample) -> float:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[float] = loop.create_future()
        self._waiting.append((time.monotonic(), sample, future))
        if len(self._waiting) >= MAX_BATCH:
            self._send()
        elif self._timer is None:
            self._timer = loop.call_later(self._window_s, self._send)
        try:
            return await asyncio.wait_for(future, self._client.deadline_s + 2 * GRACE_S)
        except asyncio.TimeoutError:
            raise NoResult("farm_unavailable", "no answer in time") from None

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and len(self._requests) < MAX_REQUESTS:
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            batch = [entry for entry in batch if not entry[2].done()]
            if not batch:
                continue
            task = asyncio.get_running_loop().create_task(self._request(batch))
            self._requests.add(task)
            task.add_done_callback(self._finished)
            _cancel_when_nobody_waits(task, [future for _, _, future in batch])

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        if self._waiting and self._timer is None:
            self._send()

    async def _request(self, batch: List[Tuple[float, Any, asyncio.Future[float]]]) -> None:
        left = self._client.deadline_s - (time.monotonic() - batch[0][0])
        try:
            if left <= 0:
                raise FarmUnavailable("too many requests are under way for one more before the deadline")
            prompts, completions, metadata = zip(*(sample for _, sample, _ in batch))
            scores = await self._client.score_async(
                prompts, completions, metadata=metadata, config=self._config, env=self._env, deadline_s=left
            )
        except FarmUnavailable as problem:
            for _, _, future in batch:
                _fail(future, NoResult("farm_unavailable", problem.message, hint=problem.hint, status=problem.status))
        except Exception as problem:
            for _, _, future in batch:
                _fail(future, problem)
        else:
            for (_, _, future), reward, outcome in zip(batch, scores.rewards, scores.outcomes):
                if reward is None:
                    _fail(future, NoResult(outcome["cause"], str(outcome.get("detail") or "")))
                elif not future.done():
                    future.set_result(reward)


def _cancel_when_nobody_waits(task: asyncio.Task[None], futures: List[asyncio.Future[float]]) -> None:
    waiting = len(futures)

    def gone(_: asyncio.Future[float]) -> None:
        nonlocal waiting
        waiting -= 1
        if waiting == 0:
            task.cancel()

    for future in futures:
        future.add_done_callback(gone)


def _fail(future: asyncio.Future[float], problem: Exception) -> None:
    if not future.done():
        future.set_exception(problem)
