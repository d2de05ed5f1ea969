"""As veRL calls: one sample at a time, many at once, on one event loop."""

from __future__ import annotations

import asyncio
import inspect
import time
import unittest
import warnings
from typing import Any

from rollout_farm import FarmError, FarmInputError, FarmRefused, NoResult
from rollout_farm import trl as trl_module
from rollout_farm.verl import compute_score, read_sample

from .stub import StubServer, hang, refuse


class Verl(unittest.TestCase):
    def setUp(self) -> None:
        self.server = StubServer()
        self.addCleanup(self.server.close)
        trl_module._warned.clear()

    def score(self, *solutions: str, **options: Any) -> list:
        async def main() -> list:
            calls = (
                compute_score(
                    data_source="d", solution_str=s, ground_truth="g", extra_info={}, url=self.server.url, **options
                )
                for s in solutions
            )
            return await asyncio.gather(*calls, return_exceptions=True)

        return asyncio.run(main())

    def test_it_is_a_plain_coroutine_function_as_verl_looks_for(self) -> None:
        self.assertTrue(inspect.iscoroutinefunction(compute_score))

    def test_samples_of_one_moment_travel_together_and_each_gets_its_own(self) -> None:
        answers = self.score(*("good" if n % 2 else "bad" for n in range(300)), config="c")
        self.assertEqual(answers, [{"score": 1.0 if n % 2 else -0.1, "no_result": 0.0} for n in range(300)])
        bodies = [request["body"] for request in self.server.requests]
        self.assertEqual(sorted(len(body["completions"]) for body in bodies), [44, 256])
        self.assertEqual(bodies[0]["metadata"][0], {"gold": "g", "data_source": "d"})
        self.assertEqual(bodies[0]["config"], "c")

    def test_no_result_raises_for_its_sample_alone(self) -> None:
        good, lost, bad = self.score("good", "lost", "bad")
        self.assertEqual((good["score"], bad["score"]), (1.0, -0.1))
        self.assertIsInstance(lost, NoResult)
        self.assertEqual(lost.cause, "sandbox_lost")

    def test_a_floor_stands_in_where_an_exception_would_end_the_run(self) -> None:
        self.assertEqual(self.score("lost", floor=-1), [{"score": -1.0, "no_result": 1.0}])
        self.server.script = [refuse(503)]
        self.assertEqual(self.score("good", floor=-1, deadline_s=0.05), [{"score": -1.0, "no_result": 1.0}])
        for floor in (float("nan"), "low", True):
            self.assertIsInstance(self.score("lost", floor=floor)[0], FarmInputError)

    def test_a_farm_that_is_away_is_no_result(self) -> None:
        self.server.script = [refuse(503)]
        (lost,) = self.score("good", deadline_s=0.05)
        self.assertEqual((type(lost), lost.cause), (NoResult, "farm_unavailable"))

    def test_a_refusal_is_an_error_even_with_a_floor(self) -> None:
        self.server.script = [refuse(404, "config_unknown", "no such config")]
        answers = self.score("good", "good", floor=-1)
        self.assertEqual([type(answer) for answer in answers], [FarmRefused, FarmRefused])

    def test_one_slow_request_does_not_hold_up_what_comes_later(self) -> None:
        self.server.script = [hang(0.6)]

        async def main() -> float:
            slow = asyncio.create_task(compute_score(solution_str="good", url=self.server.url))
            await asyncio.sleep(0.1)
            began = time.monotonic()
            await compute_score(solution_str="good", url=self.server.url)
            took = time.monotonic() - began
            await slow
            return took

        self.assertLess(asyncio.run(main()), 0.5)

    def test_a_sample_that_cannot_be_sent_spoils_no_other(self) -> None:
        async def main() -> list:
            bad = {"x": float("nan")}
            calls = [compute_score(solution_str="good", extra_info=e, url=self.server.url) for e in ({}, bad, None)]
            calls.append(compute_score(solution_str=b"bytes", url=self.server.url))
            return await asyncio.gather(*calls, return_exceptions=True)

        good, nan, also, raw = asyncio.run(main())
        self.assertEqual((good["score"], also["score"]), (1.0, 1.0))
        self.assertIsInstance(nan, FarmInputError)
        self.assertIsInstance(raw, FarmInputError)

    def test_a_caller_that_gives_up_takes_its_request_along(self) -> None:
        self.server.script = [hang(1)]

        async def main() -> None:
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(compute_score(solution_str="good", url=self.server.url), 0.1)
            await asyncio.sleep(0.05)
            left = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            self.assertEqual(left, [])

        asyncio.run(main())

    def test_one_loop_after_another(self) -> None:
        for _ in range(3):
            self.assertEqual(self.score("good")[0]["score"], 1.0)

    def test_without_a_url_it_says_which_line_is_missing(self) -> None:
        with self.assertRaises(FarmError) as caught:
            asyncio.run(compute_score(solution_str="good"))
        self.assertIn("reward_kwargs.url=", str(caught.exception))

    def test_the_sample_is_read_as_the_python_library_reads_it(self) -> None:
        cases = [
            (("d", "s", "g", None), ("", "s", {"gold": "g", "data_source": "d"})),
            ((None, "s", None, {"gold": None}), ("", "s", {"gold": None})),
            (("d", "s", "g", {"gold": "x", "data_source": "e"}), ("", "s", {"gold": "x", "data_source": "e"})),
            ((None, "s", False, "no dictionary"), ("", "s", {"gold": False})),
            ((None, "s", None, {"prompt": "P", "i": 7}), ("P", "s", {"prompt": "P", "i": 7})),
            ((None, "s", None, {"prompt": None}), ("None", "s", {"prompt": None})),
        ]
        for given, read in cases:
            self.assertEqual(read_sample(*given), read)
        chat = [{"role": "user", "content": "q"}]
        self.assertEqual(read_sample(None, "s", None, {"raw_prompt": chat}), (chat, "s", {}))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(read_sample(None, "s", None, {"tool": object(), "n": 1})[2], {"n": 1})
        self.assertEqual(len(caught), 1)
