"""Results as they close: every group once, in order, whatever the connection does."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
import unittest
from unittest import mock

from rollout_farm import FarmProtocolError, FarmRefused, FarmUnavailable, iter_results
from rollout_farm import results as results_module

from .stub import Handler, StubServer, drop, group, hang, refuse


class Results(unittest.TestCase):
    def setUp(self) -> None:
        self.server = StubServer()
        self.addCleanup(self.server.close)
        patcher = mock.patch.object(results_module, "backoff", lambda attempt, after: 0.01)
        patcher.start()
        self.addCleanup(patcher.stop)

    def run_of(self, count: int, state: str = "done") -> dict:
        self.server.runs["r"] = {"state": state, "groups": [group(n) for n in range(count)]}
        return self.server.runs["r"]

    def numbers(self, **options: object) -> list:
        return [record["group"] for record in iter_results(self.server.url, "r", **options)]  # type: ignore[arg-type]

    def test_all_groups_in_order_then_the_end(self) -> None:
        self.run_of(20)
        self.assertEqual(self.numbers(), list(range(20)))
        self.assertEqual(self.numbers(follow=False), list(range(20)))

    def test_it_goes_on_behind_a_cursor(self) -> None:
        self.run_of(5)
        self.assertEqual(self.numbers(after="c1"), [2, 3, 4])
        self.assertEqual(self.numbers(after="c4"), [])

    def test_connections_that_break_anywhere_leave_no_gap_and_no_repeat(self) -> None:
        self.run_of(30)
        draw = random.Random(4)
        for follow in (True, False):
            for _ in range(3):
                self.server.cuts = [draw.randrange(0, 1500) for _ in range(12)]
                self.assertEqual(self.numbers(follow=follow), list(range(30)))

    def test_each_place_of_a_line_may_be_the_one_where_it_breaks(self) -> None:
        self.run_of(2)
        whole = len(json.dumps(group(0))) + 2
        for cut in range(0, whole + 20, 11):
            self.server.cuts = [cut]
            self.assertEqual(self.numbers(follow=False), [0, 1], cut)

    def test_refusals_for_a_while_do_not_end_it(self) -> None:
        self.run_of(3)
        self.server.script = [refuse(503), drop, refuse(429), refuse(502)]
        self.assertEqual(self.numbers(), [0, 1, 2])

    def test_a_run_at_work_is_followed_until_it_has_ended(self) -> None:
        state = self.run_of(1, "running")
        seen = []

        def work() -> None:
            for number in range(1, 6):
                time.sleep(0.03)
                state["groups"].append(group(number))
            state["state"] = "done"

        worker = threading.Thread(target=work)
        worker.start()
        for record in iter_results(self.server.url, "r"):
            seen.append(record["group"])
        worker.join()
        self.assertEqual(seen, list(range(6)))

    def test_a_stream_that_falls_silent_is_opened_again(self) -> None:
        self.run_of(2)
        self.server.script = [hang(3)]
        began = time.monotonic()
        self.assertEqual(self.numbers(idle_s=0.2), [0, 1])
        self.assertLess(time.monotonic() - began, 1)

    def test_a_farm_that_stays_away_ends_it_and_the_cursor_is_named(self) -> None:
        self.run_of(3, "running")
        reader = iter_results(self.server.url, "r", patience_s=0.2)
        self.assertEqual([r["group"] for r in itertools.islice(reader, 3)], [0, 1, 2])
        with self.assertRaises(FarmUnavailable) as caught:
            next(reader)
        self.assertIn("c2", caught.exception.hint or "")

    def test_unknown_runs_and_cursors_are_refused_at_once(self) -> None:
        self.run_of(1)
        for run, after in (("nobody", None), ("r", "other"), ("a/../b?c", None)):
            with self.subTest(run), self.assertRaises(FarmRefused):
                list(iter_results(self.server.url, run, after))

    def test_a_record_that_is_not_sound_is_not_handed_on(self) -> None:
        broken = [
            {**group(0), "cursor": None},
            {**group(0), "run": "other"},
            {**group(0), "members": [{"member": 0, "status": "completed", "reward": None, "advantage": 0.0}]},
            {**group(0), "members": [{"member": 0, "status": "completed", "reward": float("nan"), "advantage": 0.0}]},
            {**group(0), "members": [{"member": 0, "status": "completed", "advantage": 0.0}]},
            {**group(0), "members": [{"member": 0, "status": "no_result", "cause": "budget", "reward": 0.0}]},
            {**group(0), "members": [{"member": 0, "status": "fine"}]},
            {**group(0), "members": None},
        ]
        for record in broken:
            with self.subTest(str(record)[:200]), self.assertRaises(FarmProtocolError):
                self.server.runs["r"] = {"state": "done", "groups": [record]}
                self.numbers()

    def test_a_body_that_has_no_mark_of_its_end_is_refused(self) -> None:
        def old(handler: Handler, body: dict) -> bool:
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(json.dumps(group(0)).encode() + b"\n")
            handler.close_connection = True
            return True

        self.run_of(1)
        self.server.script = [old]
        self.assertRaises(FarmProtocolError, self.numbers)

    def test_a_body_with_a_length_that_is_cut_is_taken_up_again(self) -> None:
        def short(handler: Handler, body: dict) -> bool:
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
            handler.wfile.write(json.dumps(group(0)).encode() + b"\n")
            handler.close_connection = True
            return True

        self.run_of(3)
        self.server.script = [short]
        self.assertEqual(self.numbers(), [0, 1, 2])
