"""The core: what is sent, what is believed, what is tried again, and until when."""

from __future__ import annotations

import socket
import threading
import time
import unittest

from rollout_farm import FarmClient, FarmInputError, FarmProtocolError, FarmRefused, FarmUnavailable
from rollout_farm import client as client_module

from .stub import FLOOR, Handler, StubServer, cut_body, drip, drop, hang, refuse, says


class ScoreCase(unittest.TestCase):
    def setUp(self) -> None:
        self.server = StubServer()
        self.addCleanup(self.server.close)
        self.client = FarmClient(self.server.url, deadline_s=5)

    def grace(self, seconds: float) -> None:
        before = client_module.GRACE_S
        client_module.GRACE_S = seconds
        self.addCleanup(setattr, client_module, "GRACE_S", before)


class Answers(ScoreCase):
    def test_rewards_come_in_the_order_asked_and_no_result_is_none(self) -> None:
        scores = self.client.score(["p"] * 3, ["good", "lost", "bad"])
        self.assertEqual(scores.rewards, [1.0, None, -0.1])
        self.assertEqual(scores.causes, {"sandbox_lost": 1})
        self.assertEqual(scores.outcomes[0]["components"], {"env": 1.0})

    def test_the_floor_is_the_farms_when_asked_for(self) -> None:
        scores = self.client.score(["p"] * 2, ["good", "lost"], on_no_result="floor")
        self.assertEqual(scores.rewards, [1.0, FLOOR])
        self.assertEqual(scores.no_result, 1)

    def test_config_metadata_environment_and_deadline_travel(self) -> None:
        env = {"name": "guess", "config": {"low": 1}, "seed": 3}
        self.client.score(["p"], ["c"], config="a", metadata=[{"gold": "x"}], env=env, deadline_s=2)
        body = self.server.requests[0]["body"]
        self.assertEqual((body["config"], body["metadata"], body["env"]), ("a", [{"gold": "x"}], env))
        self.assertTrue(1500 < body["deadline_ms"] <= 2000)

    def test_nothing_asked_is_nothing_sent(self) -> None:
        self.assertEqual(self.client.score([], []).rewards, [])
        self.assertEqual(self.server.requests, [])

    def test_texts_survive_whatever_they_hold(self) -> None:
        texts = ["é", "🍐", "\ud800", "\x00\u2028", "good \udfff\ud800", '"\\']
        self.assertEqual(self.client.score(texts, texts).rewards, [-0.1] * 4 + [1.0, -0.1])
        self.assertEqual(self.server.requests[0]["body"]["completions"], texts)

    def test_numbers_in_metadata_keep_their_type(self) -> None:
        self.client.score(["p"], ["c"], metadata=[{"a": 1, "b": 1.0, "c": 2**70, "d": True}])
        metadata = self.server.requests[0]["body"]["metadata"][0]
        self.assertEqual([type(v) for v in metadata.values()], [int, float, int, bool])
        self.assertEqual(metadata["c"], 2**70)

    def test_a_batch_of_twenty_thousand(self) -> None:
        completions = ["good" if i % 3 == 0 else "bad" for i in range(20_000)]
        rewards = self.client.score(completions, completions).rewards
        self.assertEqual(rewards, [1.0 if i % 3 == 0 else -0.1 for i in range(20_000)])

    def test_a_batch_that_is_too_large_is_sent_in_halves_and_comes_back_in_order(self) -> None:
        def small_only(handler: Handler, body: dict) -> bool:
            if len(body["completions"]) <= 3:
                return False
            handler.error(413, "body_too_large", "too large", "send it in several requests")
            return True

        self.server.script = [small_only] * 100
        completions = [("good" if i % 2 else "bad") for i in range(17)]
        rewards = self.client.score(completions, completions).rewards
        self.assertEqual(rewards, [1.0 if i % 2 else -0.1 for i in range(17)])
        keys = [r["headers"]["Idempotency-Key"] for r in self.server.requests]
        self.assertEqual(len(keys), len(set(keys)))


class BrokenAnswers(ScoreCase):
    def test_nothing_but_a_sound_answer_becomes_a_reward(self) -> None:
        good = {"status": "completed", "reward": 1.0}
        lost = {"status": "no_result", "cause": "budget"}
        broken = {
            "short": {"rewards": [1.0], "outcomes": [good, good]},
            "long": {"rewards": [1.0] * 3, "outcomes": [good, good]},
            "outcomes short": {"rewards": [1.0, 1.0], "outcomes": [good]},
            "no outcomes": {"rewards": [1.0, 1.0]},
            "no rewards": {"outcomes": [good, good]},
            "text": {"rewards": ["1.0", 1.0], "outcomes": [good, good]},
            "true": {"rewards": [True, 1.0], "outcomes": [good, good]},
            "list": {"rewards": [[1.0], 1.0], "outcomes": [good, good]},
            "null for completed": {"rewards": [None, 1.0], "outcomes": [good, good]},
            "zero for no result": {"rewards": [0.0, 1.0], "outcomes": [lost, good]},
            "no cause": {"rewards": [None, 1.0], "outcomes": [{"status": "no_result"}, good]},
            "unknown status": {"rewards": [1.0, 1.0], "outcomes": [{"status": "ok"}, good]},
            "outcome is text": {"rewards": [1.0, 1.0], "outcomes": ["completed", good]},
            "NaN": b'{"rewards":[NaN,1.0],"outcomes":[{"status":"completed"},{"status":"completed"}]}',
            "infinity": b'{"rewards":[1e999,1.0],"outcomes":[{"status":"completed"},{"status":"completed"}]}',
            "huge": b'{"rewards":[1' + b"0" * 400 + b',1],"outcomes":[{"status":"completed"},{"status":"completed"}]}',
            "bare list": [1.0, 1.0],
            "html": b"<html>hello</html>",
            "empty": b"",
            "not utf-8": b'{"rewards": "\xff"}',
            "deep": b"[" * 100_000,
        }
        for name, body in broken.items():
            with self.subTest(name):
                self.server.script = [says(body)]
                self.assertRaises(FarmProtocolError, self.client.score, ["p", "p"], ["good", "good"])
        self.assertEqual(len(self.server.requests), len(broken), "a broken answer is not asked for again")

    def test_unusable_calls_are_refused_before_anything_is_sent(self) -> None:
        deep: list = []
        for _ in range(1000):
            deep = [deep]
        calls = [
            (["p"], ["a", "b"], {}),
            (["p"], ["a"], {"metadata": [{}, {}]}),
            ("p", ["a"], {}),
            (["p"], "a", {}),
            (["p"], ["a"], {"metadata": [{"x": float("nan")}]}),
            (["p"], ["a"], {"metadata": [{"x": object()}]}),
            (["p"], ["a"], {"metadata": [{"x": deep}]}),
            (["p"], [b"a"], {}),
            (["p"], ["a"], {"on_no_result": "zero"}),
            (["p"], ["a"], {"deadline_s": 0}),
            (["p"], ["a"], {"deadline_s": float("nan")}),
        ]
        for number, (prompts, completions, options) in enumerate(calls):
            with self.subTest(number):
                self.assertRaises(FarmInputError, self.client.score, prompts, completions, **options)
        self.assertEqual(self.server.requests, [])


class Retries(ScoreCase):
    def test_what_passes_is_tried_again_under_one_idempotency_key(self) -> None:
        self.server.script = [refuse(429), drop, refuse(503), cut_body]
        self.assertEqual(self.client.score(["p"], ["good"]).rewards, [1.0])
        keys = {r["headers"]["Idempotency-Key"] for r in self.server.requests}
        self.assertEqual((len(self.server.requests), len(keys)), (5, 1))
        self.client.score(["p"], ["good"])
        self.assertNotIn(self.server.requests[-1]["headers"]["Idempotency-Key"], keys)

    def test_what_was_refused_before_it_began_asks_only_for_the_time_that_is_left(self) -> None:
        self.server.script = [refuse(429), drop]
        self.client.score(["p"], ["good"])
        first, second, third = (r["body"]["deadline_ms"] for r in self.server.requests)
        self.assertLess(second, first)
        self.assertEqual(third, second, "the farm may be at work on it: the same request joins that")

    def test_retry_after_is_kept_to(self) -> None:
        self.server.script = [refuse(429, Retry_After="0.4")]
        began = time.monotonic()
        self.client.score(["p"], ["good"])
        self.assertGreaterEqual(time.monotonic() - began, 0.4)

    def test_a_retry_after_beyond_the_deadline_is_not_waited_for(self) -> None:
        self.server.script = [refuse(429, Retry_After="3600")]
        began = time.monotonic()
        with self.assertRaises(FarmUnavailable) as caught:
            self.client.score(["p"], ["good"])
        self.assertLess(time.monotonic() - began, 1)
        self.assertEqual((caught.exception.code, caught.exception.status), ("busy", 429))
        self.assertEqual(caught.exception.hint, "try again")

    def test_a_refusal_is_not_tried_again_and_says_what_the_farm_said(self) -> None:
        self.server.script = [refuse(404, "config_unknown", "no config x")]
        with self.assertRaises(FarmRefused) as caught:
            self.client.score(["p"], ["good"], config="x")
        error = caught.exception
        self.assertEqual(
            (error.code, error.message, error.hint, error.status), ("config_unknown", "no config x", "try again", 404)
        )
        self.assertEqual(len(self.server.requests), 1)

    def test_a_redirect_is_not_followed(self) -> None:
        self.server.script = [refuse(302, "moved", "elsewhere", Location="http://example.invalid/")]
        self.assertRaises(FarmRefused, self.client.score, ["p"], ["good"])

    def test_a_farm_that_comes_up_late_is_waited_for(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        servers = []
        timer = threading.Timer(0.2, lambda: servers.append(StubServer(port)))
        timer.start()
        try:
            self.assertEqual(FarmClient(f"http://127.0.0.1:{port}", deadline_s=8).score(["p"], ["good"]).rewards, [1.0])
        finally:
            timer.join()
            for server in servers:
                server.close()

    def test_nobody_there_ends_at_the_deadline(self) -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            client = FarmClient(f"http://127.0.0.1:{bound.getsockname()[1]}", deadline_s=0.5)
            began = time.monotonic()
            self.assertRaises(FarmUnavailable, client.score, ["p"], ["good"])
            self.assertLess(time.monotonic() - began, 1)

    def test_a_farm_that_hangs_or_drips_is_left_at_the_hard_limit(self) -> None:
        self.grace(0.1)
        for step in (hang(0.6), drip):
            with self.subTest(str(step)):
                self.server.script = [step]
                began = time.monotonic()
                self.assertRaises(FarmUnavailable, self.client.score, ["p"], ["good"], deadline_s=0.2)
                self.assertLess(time.monotonic() - began, 1.5)

    def test_a_server_that_does_not_speak_http_is_not_taken_for_a_farm(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.sendall(b"SSH-2.0-hello\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        client = FarmClient(f"http://127.0.0.1:{listener.getsockname()[1]}", deadline_s=2)
        self.assertRaises(FarmProtocolError, client.score, ["p"], ["good"])
        thread.join(2)
        listener.close()
