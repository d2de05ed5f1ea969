"""Reward functions for TRL (GRPO, RLOO, AsyncGRPO): one call of the trainer is one request to the farm.

`FarmReward` is called, `AsyncFarmReward` is awaited: TRL looks at `__call__`, so that one object cannot be both.
A sample without a result is None, which TRL leaves out of its group; never a number that looks like a verdict.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from .client import DEFAULT_DEADLINE_S, FarmClient, Scores
from .errors import FarmInputError, FarmUnavailable, NoResult
from .wire import Unsupported, is_list, plain

# What TRL passes beside the dataset's columns.
NOT_COLUMNS = frozenset(
    {
        "trainer_state",
        "log_extra",
        "log_metric",
        "environments",
        "completion_ids",
        "prompt_ids",
        "prompts",
        "completions",
    }
)
# After so many calls in a row without any answer the run is told, instead of training on nothing for ever.
GIVE_UP_AFTER = 3
_warned: Set[Tuple[str, str]] = set()


class _Reward:
    def __init__(
        self,
        url: str,
        config: Optional[str] = None,
        *,
        api_key: Optional[str] = None,
        deadline_s: float = DEFAULT_DEADLINE_S,
        on_no_result: Union[None, str, float] = None,
        name: str = "farm",
        env: Optional[Mapping[str, Any]] = None,
        columns: Optional[Sequence[str]] = None,
        give_up_after: int = GIVE_UP_AFTER,
    ) -> None:
        """
        config: the name of the gateway's config; None is its first.
        on_no_result: None leaves the sample out of its group; "floor" takes the farm's floor; "raise" ends the
            call; a number stands in its place (for trainers that have no word for it).
        env: an environment to score in, `{"name", "config", "seed"}`, in place of a config.
        columns: the dataset columns that travel; None sends all that JSON can carry.
        give_up_after: so many calls in a row that nobody answered are borne; the next one raises.
        """
        self.__name__ = name
        self.config = config
        self.on_no_result = _mode(on_no_result)
        self.env = None if env is None else dict(env)
        self.columns = None if columns is None else tuple(columns)
        self.give_up_after = give_up_after
        self._client = FarmClient(url, api_key=api_key, deadline_s=deadline_s)
        self._unanswered = 0
        self._causes: Set[str] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._client.url!r}, {self.config!r}, name={self.__name__!r})"

    def _options(self, completions: Sequence[Any], columns: Mapping[str, Any]) -> Dict[str, Any]:
        return {
            "config": self.config,
            "env": self.env,
            "metadata": columns_to_metadata(columns, len(completions), self.columns),
            "on_no_result": "floor" if self.on_no_result == "floor" else "null",
        }

    def _lost(self, problem: FarmUnavailable, count: int) -> Scores:
        """Nobody answered the whole call. The farm's floor is not known then, and is not invented."""
        self._unanswered += 1
        if self.on_no_result in ("raise", "floor") or self._unanswered > self.give_up_after:
            raise problem
        warnings.warn(f"{self.__name__}: {count} samples have no result: {problem}", RuntimeWarning, stacklevel=3)
        outcome = {"status": "no_result", "cause": "farm_unavailable", "detail": problem.message}
        return Scores([None] * count, [dict(outcome) for _ in range(count)])

    def _rewards(self, scores: Scores, columns: Mapping[str, Any]) -> List[Optional[float]]:
        self._report(scores, columns.get("log_metric"), columns.get("log_extra"))
        if self.on_no_result == "raise" and scores.no_result:
            causes = ", ".join(f"{cause} {count}" for cause, count in sorted(scores.causes.items()))
            first = next(outcome for outcome in scores.outcomes if outcome["status"] == "no_result")
            raise NoResult(causes, f"{scores.no_result} of {len(scores.rewards)} samples; {first.get('detail') or ''}")
        if isinstance(self.on_no_result, float):
            return [self.on_no_result if reward is None else reward for reward in scores.rewards]
        return list(scores.rewards)

    def _report(self, scores: Scores, log_metric: Any, log_extra: Any) -> None:
        if callable(log_metric):
            log_metric(f"{self.__name__}/no_result", float(scores.no_result))
            # TRL averages over the calls that named a metric: once seen, a cause is named in each.
            self._causes.update(scores.causes)
            for cause in sorted(self._causes):
                log_metric(f"{self.__name__}/no_result/{cause}", float(scores.causes.get(cause, 0)))
        if callable(log_extra) and scores.outcomes:
            log_extra(f"{self.__name__}/outcome", [_in_words(outcome) for outcome in scores.outcomes])


class FarmReward(_Reward):
    """`GRPOTrainer(…, reward_funcs=FarmReward("http://farm:8787"))`"""

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> List[Optional[float]]:
        try:
            scores = self._client.score(prompts, completions, **self._options(completions, columns))
            self._unanswered = 0
        except FarmUnavailable as problem:
            scores = self._lost(problem, len(completions))
        return self._rewards(scores, columns)


class AsyncFarmReward(_Reward):
    """The same for several reward functions at once: TRL gathers those that are asynchronous."""

    async def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> List[Optional[float]]:
        try:
            scores = await self._client.score_async(prompts, completions, **self._options(completions, columns))
            self._unanswered = 0
        except FarmUnavailable as problem:
            scores = self._lost(problem, len(completions))
        return self._rewards(scores, columns)


def columns_to_metadata(
    columns: Mapping[str, Any], count: int, only: Optional[Sequence[str]] = None
) -> Optional[List[Dict[str, Any]]]:
    """A dictionary for each sample. What is no list is not a column; a column of another length is an error."""
    metadata: List[Dict[str, Any]] = [{} for _ in range(count)]
    for name, values in columns.items():
        if name in NOT_COLUMNS or (only is not None and name not in only):
            continue
        tolist = getattr(values, "tolist", None)
        values = tolist() if callable(tolist) else values
        if not is_list(values):
            continue
        if len(values) != count:
            raise FarmInputError(f"column {name!r} has {len(values)} entries for {count} completions")
        try:
            cells = [plain(value, f"column {name!r}, row {row}") for row, value in enumerate(values)]
        except Unsupported as problem:
            warn_left_out(f"column {name!r}", str(problem))
            continue
        for entry, cell in zip(metadata, cells):
            entry[name] = cell
    return metadata if any(metadata) else None


def warn_left_out(what: str, kind: str) -> None:
    if (what, kind) not in _warned:
        _warned.add((what, kind))
        warnings.warn(f"{what} is left out of the farm's metadata: JSON has no {kind}", RuntimeWarning, stacklevel=4)


def _mode(on_no_result: Any) -> Union[None, str, float]:
    if on_no_result is None or on_no_result == "null":
        return None
    if on_no_result in ("floor", "raise"):
        return str(on_no_result)
    number = isinstance(on_no_result, (int, float)) and not isinstance(on_no_result, bool)
    if number and math.isfinite(on_no_result):
        return float(on_no_result)
    raise FarmInputError(f"on_no_result is None, 'floor', 'raise' or a finite number, not {on_no_result!r}")


def _in_words(outcome: Mapping[str, Any]) -> str:
    return str(outcome["status"]) if outcome["status"] == "completed" else f"no_result: {outcome['cause']}"
