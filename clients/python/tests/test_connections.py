"""Threads, forks, pickles, event loops: a connection is never shared, and nothing outlives its caller."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import subprocess
import sys
import threading
import time
import unittest

from rollout_farm import AsyncFarmReward, FarmClient, FarmReward, FarmUnavailable, NoResult
from rollout_farm.errors import FarmRefused

from .stub import StubServer, drop, hang

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Connections(unittest.TestCase):
    def setUp(self) -> None:
        self.server = StubServer()
        self.addCleanup(self.server.close)

    def test_nothing_is_opened_before_the_first_call_and_then_one_connection_serves_all(self) -> None:
        client = FarmClient(self.server.url)
        self.assertEqual(self.server.connections, 0)
        for _ in range(5):
            client.score(["p"], ["good"])
        self.assertEqual(self.server.connections, 1)

    def test_a_connection_that_died_while_idle_costs_no_waiting(self) -> None:
        client = FarmClient(self.server.url)
        client.score(["p"], ["good"])
        self.server.script = [drop]
        began = time.monotonic()
        self.assertEqual(client.score(["p"], ["good"]).rewards, [1.0])
        self.assertLess(time.monotonic() - began, 0.1)

    def test_threads_get_their_own_answers(self) -> None:
        client = FarmClient(self.server.url)
        wrong = []

        def work(number: int) -> None:
            texts = ["good" if (number >> bit) & 1 else "bad" for bit in range(8)]
            for _ in range(10):
                if client.score(texts, texts).rewards != [1.0 if t == "good" else -0.1 for t in texts]:
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_fork_opens_its_own_connection_and_leaves_the_parents_whole(self) -> None:
        reward = FarmReward(self.server.url)
        self.assertEqual(reward(["p"], ["good"]), [1.0])
        pids = []
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                try:
                    os._exit(0 if reward(["p"], ["bad"]) == [-0.1] else 1)
                finally:
                    os._exit(2)
            pids.append(pid)
        self.assertEqual([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids], [0, 0, 0])
        self.assertEqual(reward(["p"], ["good"]), [1.0])
        self.assertEqual(self.server.connections, 4)

    def test_a_pickle_works_in_a_spawned_process_and_holds_no_key(self) -> None:
        url = self.server.url.replace("http://", "http://any:canary-key@")
        for reward in (FarmReward(url, "a", name="n"), AsyncFarmReward(url, "a"), FarmClient(url)):
            with self.subTest(type(reward).__name__):
                self.assertNotIn(b"canary", pickle.dumps(reward))
        reward = FarmReward(url, "a", name="n")
        reward(["p"], ["good"])
        code = "import pickle, sys; r = pickle.load(sys.stdin.buffer); print(r.__name__, r(['p'], ['good']))"
        ran = subprocess.run(
            [sys.executable, "-c", code],
            input=pickle.dumps(reward),
            capture_output=True,
            cwd=HERE,
            env={**os.environ, "FARM_API_KEY": "from-the-environment"},
            timeout=30,
        )
        self.assertEqual((ran.stdout, ran.stderr), (b"n [1.0]\n", b""))
        self.assertEqual(self.server.requests[-1]["headers"]["Authorization"], "Bearer from-the-environment")

    def test_a_copy_made_in_this_process_keeps_its_key(self) -> None:
        reward = copy.deepcopy(FarmReward(self.server.url, api_key="canary-key"))
        pickle.loads(pickle.dumps(reward))(["p"], ["good"])
        self.assertEqual(self.server.requests[-1]["headers"]["Authorization"], "Bearer canary-key")

    def test_the_errors_survive_pickling(self) -> None:
        for error in (FarmRefused("m", code="c", hint="h", status=404), NoResult("budget", "spent", hint="h")):
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), str(again), vars(again)), (type(error), str(error), vars(error)))


class Loops(unittest.TestCase):
    def setUp(self) -> None:
        self.server = StubServer()
        self.addCleanup(self.server.close)

    def test_calls_run_side_by_side_and_leave_the_loop_free(self) -> None:
        reward = AsyncFarmReward(self.server.url)
        self.server.script = [hang(0.3)] * 40

        async def main() -> int:
            ticks = 0

            async def tick() -> None:
                nonlocal ticks
                while True:
                    await asyncio.sleep(0.01)
                    ticks += 1

            ticker = asyncio.create_task(tick())
            answers = await asyncio.gather(*(reward(["p"], ["good"]) for _ in range(40)))
            ticker.cancel()
            self.assertEqual(answers, [[1.0]] * 40)
            return ticks

        began = time.monotonic()
        self.assertGreater(asyncio.run(main()), 10)
        self.assertLess(time.monotonic() - began, 2)

    def test_a_cancelled_call_drops_its_request_at_once(self) -> None:
        client = FarmClient(self.server.url)
        self.server.script = [hang(2)]

        async def main() -> None:
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(client.score_async(["p"], ["good"]), 0.2)

        before = threading.active_count()
        asyncio.run(main())
        deadline = time.monotonic() + 1
        while any(t.name == "rollout-farm" for t in threading.enumerate()) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(any(t.name == "rollout-farm" for t in threading.enumerate()), before)

    def test_the_same_object_serves_one_loop_after_another(self) -> None:
        reward = AsyncFarmReward(self.server.url)
        for _ in range(3):
            self.assertEqual(asyncio.run(reward(["p"], ["good"])), [1.0])

    def test_errors_reach_the_awaiting_side(self) -> None:
        client = FarmClient("http://127.0.0.1:1", deadline_s=0.2)
        with self.assertRaises(FarmUnavailable):
            asyncio.run(client.score_async(["p"], ["good"]))
