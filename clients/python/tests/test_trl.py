"""As TRL calls: keywords only, columns beside, callbacks for what is lost."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import unittest
import warnings
from typing import Any, Dict, List

from rollout_farm import AsyncFarmReward, FarmInputError, FarmReward, FarmUnavailable, NoResult
from rollout_farm import trl as trl_module

from .stub import FLOOR, StubServer, refuse


class Array:
    """What numpy and torch values have in common."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def tolist(self) -> Any:
        return self.value


class Image:
    pass


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.server = StubServer()
        self.addCleanup(self.server.close)
        trl_module._warned.clear()

    def body(self) -> Dict[str, Any]:
        return self.server.requests[-1]["body"]


class Calls(Case):
    def call(self, reward: Any, completions: List[Any], **columns: Any) -> Any:
        """With all that TRL adds."""
        own = {
            "completion_ids": [[1]] * len(completions),
            "trainer_state": object(),
            "environments": [object()] * len(completions),
        }
        return reward(prompts=["p"] * len(completions), completions=completions, **{**own, **columns})

    def test_a_sample_without_a_result_is_none(self) -> None:
        rewards = self.call(FarmReward(self.server.url), ["good", "lost", "bad"])
        self.assertEqual(rewards, [1.0, None, -0.1])

    def test_columns_become_metadata_and_trls_own_arguments_do_not(self) -> None:
        self.call(FarmReward(self.server.url, "cfg"), ["a", "b"], gold=["x", None], level=[1, 2.0], scalar=5)
        body = self.body()
        self.assertEqual(body["metadata"], [{"gold": "x", "level": 1}, {"gold": None, "level": 2.0}])
        self.assertEqual(sorted(body), ["completions", "config", "deadline_ms", "metadata", "on_no_result", "prompts"])
        self.call(FarmReward(self.server.url), ["a"])
        self.assertNotIn("metadata", self.body())
        self.assertNotIn("config", self.body())

    def test_only_the_columns_that_are_named_travel(self) -> None:
        self.call(FarmReward(self.server.url, columns=["gold"]), ["a"], gold=["x"], other=[float("nan")])
        self.assertEqual(self.body()["metadata"], [{"gold": "x"}])

    def test_conversations_travel_as_they_are_but_without_images(self) -> None:
        prompt = [{"role": "user", "content": [{"type": "image", "image": Image()}, {"type": "text", "text": "t"}]}]
        call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]}
        completion = [call, {"role": "tool", "name": "f", "content": "ok"}, {"role": "assistant", "content": "good"}]
        self.assertEqual(FarmReward(self.server.url)(prompts=[prompt], completions=[completion]), [1.0])
        self.assertEqual(self.body()["prompts"], [[{"role": "user", "content": [{"type": "text", "text": "t"}]}]])
        self.assertEqual(self.body()["completions"], [completion])

    def test_array_values_become_plain_and_what_json_cannot_say_is_left_out_with_one_warning(self) -> None:
        reward = FarmReward(self.server.url)
        columns = {"n": Array([1, 2]), "m": [Array(3), Array([1.5])], "image": [Image(), None], "raw": [b"x", b"y"]}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                self.call(reward, ["a", "b"], **columns)
        self.assertEqual(self.body()["metadata"], [{"n": 1, "m": 3}, {"n": 2, "m": [1.5]}])
        self.assertEqual(len(caught), 2)
        self.assertIn("'image'", str(caught[0].message))

    def test_a_nan_or_a_column_of_another_length_is_an_error_that_names_it(self) -> None:
        for columns, named in (({"gold": [1.0, float("nan")]}, "'gold', row 1"), ({"gold": ["x"]}, "'gold' has 1")):
            with self.assertRaises(FarmInputError) as caught:
                self.call(FarmReward(self.server.url), ["a", "b"], **columns)
            self.assertIn(named, str(caught.exception))
        self.assertEqual(self.server.requests, [])

    def test_what_is_lost_is_counted_by_cause_and_named_by_sample(self) -> None:
        metrics: List[Any] = []
        extra: Dict[str, Any] = {}
        reward = FarmReward(self.server.url, name="f")
        callbacks = {"log_metric": lambda n, v: metrics.append((n, v)), "log_extra": extra.__setitem__}
        self.call(reward, ["good", "lost", "lost"], **callbacks)
        self.assertEqual(metrics, [("f/no_result", 2.0), ("f/no_result/sandbox_lost", 2.0)])
        self.assertEqual(extra, {"f/outcome": ["completed", "no_result: sandbox_lost", "no_result: sandbox_lost"]})
        metrics.clear()
        self.call(reward, ["good"], **callbacks)
        self.assertEqual(metrics, [("f/no_result", 0.0), ("f/no_result/sandbox_lost", 0.0)])

    def test_other_words_for_no_result(self) -> None:
        def rewards(mode: Any) -> Any:
            return self.call(FarmReward(self.server.url, on_no_result=mode), ["good", "lost"])

        self.assertEqual(rewards("null"), [1.0, None])
        self.assertEqual(rewards("floor"), [1.0, FLOOR])
        self.assertEqual(rewards(-3), [1.0, -3.0])
        with self.assertRaises(NoResult) as caught:
            rewards("raise")
        self.assertIn("sandbox_lost", str(caught.exception))
        for mode in (float("nan"), "zero", True, [0]):
            self.assertRaises(FarmInputError, FarmReward, self.server.url, on_no_result=mode)

    def test_a_farm_that_stays_away_is_borne_for_some_calls_and_then_named(self) -> None:
        reward = FarmReward(self.server.url, deadline_s=0.05, give_up_after=2)
        self.server.script = [refuse(503)] * 2
        metrics: Dict[str, float] = {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                self.assertEqual(self.call(reward, ["good", "good"], log_metric=metrics.__setitem__), [None, None])
        self.assertEqual(metrics["farm/no_result/farm_unavailable"], 2.0)
        self.assertEqual(len(caught), 2)
        self.server.script = [refuse(503)]
        self.assertRaises(FarmUnavailable, self.call, reward, ["good"])
        self.assertEqual(self.call(reward, ["good"]), [1.0])
        self.server.script = [refuse(503)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(self.call(reward, ["good"]), [None], "an answer in between begins the count anew")

    def test_a_floor_that_nobody_gave_is_not_invented(self) -> None:
        self.server.script = [refuse(503)]
        reward = FarmReward(self.server.url, deadline_s=0.05, on_no_result="floor")
        self.assertRaises(FarmUnavailable, self.call, reward, ["good"])

    def test_names_can_be_given_and_set_and_are_kept_by_pickles(self) -> None:
        reward = FarmReward(self.server.url, name="first")
        self.assertEqual(reward.__name__, "first")
        reward.__name__ = "second"
        self.assertEqual(pickle.loads(pickle.dumps(reward)).__name__, "second")
        self.assertEqual(FarmReward(self.server.url).__name__, "farm")

    def test_trl_tells_the_two_apart(self) -> None:
        self.assertFalse(inspect.iscoroutinefunction(FarmReward.__call__))
        self.assertTrue(inspect.iscoroutinefunction(AsyncFarmReward.__call__))
        rewards = asyncio.run(self.call(AsyncFarmReward(self.server.url), ["good", "lost"], gold=["x", "y"]))
        self.assertEqual(rewards, [1.0, None])
        self.assertEqual(self.body()["metadata"], [{"gold": "x"}, {"gold": "y"}])
