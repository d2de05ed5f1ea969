"""The key: where it comes from, how it is sent, and that nothing shows it."""

from __future__ import annotations

import os
import pickle
import traceback
import unittest
from typing import Callable, List
from unittest import mock

from rollout_farm import AsyncFarmReward, FarmClient, FarmError, FarmReward, iter_results
from rollout_farm.address import parse_address

from .stub import StubServer, drop, refuse, says

CANARY = "canary-0123456789"


class KeyOrder(unittest.TestCase):
    def setUp(self) -> None:
        self.server = StubServer()
        self.addCleanup(self.server.close)

    def sent(self, url: str, **options: str) -> str:
        FarmClient(url, **options).score(["p"], ["good"])
        return self.server.requests[-1]["headers"].get("Authorization", "none")

    def test_the_argument_counts_before_the_url_and_that_before_the_environment(self) -> None:
        in_url = self.server.url.replace("http://", "http://any:from%2Furl@")
        with mock.patch.dict(os.environ, {"FARM_API_KEY": " , first , second"}):
            self.assertEqual(self.sent(in_url, api_key="given"), "Bearer given")
            self.assertEqual(self.sent(in_url), "Bearer from/url")
            self.assertEqual(self.sent(self.server.url), "Bearer first")
        with mock.patch.dict(os.environ):
            os.environ.pop("FARM_API_KEY", None)
            self.assertEqual(self.sent(self.server.url), "none")

    def test_urls_are_read_or_refused(self) -> None:
        for url, shown in {
            "http://farm:8787": "http://farm:8787",
            "http://farm:8787/": "http://farm:8787",
            "https://farm/prefix/": "https://farm:443/prefix",
            "http://[::1]:8787": "http://[::1]:8787",
            f"http://u:{CANARY}@farm": "http://farm:80",
        }.items():
            self.assertEqual(str(parse_address(url)[0]), shown)
        bad = ["farm:8787", "", "ftp://farm", "http://", "http://farm:99999", "http://farm?x=1", "http://farm#x", None]
        bad += [
            f"http://any:{CANARY}/x@farm:8787",
            f"http://any:{CANARY}@farm:8787?q",
            f"any:{CANARY}@farm",
            f"http://a b:{CANARY}@fa rm",
        ]
        for url in bad:
            with self.subTest(url), self.assertRaises(FarmError) as caught:
                parse_address(url)  # type: ignore[arg-type]
            self.assertNotIn("canary", said(caught.exception))

    def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(self) -> None:
        for key in (f"{CANARY}\r\nX: y", f"{CANARY}é", "", f"{CANARY}\x00"):
            with self.subTest(repr(key)), self.assertRaises(FarmError) as caught:
                FarmClient(self.server.url, api_key=key)
            self.assertNotIn("canary", said(caught.exception))
        with mock.patch.dict(os.environ, {"FARM_API_KEY": f"{CANARY}\n\x7f"}), self.assertRaises(FarmError) as caught:
            FarmClient(self.server.url).score(["p"], ["good"])
        self.assertNotIn("canary", said(caught.exception))


class Canary(unittest.TestCase):
    """One key through every path that fails."""

    def test_no_error_repr_or_pickle_shows_the_key(self) -> None:
        with StubServer() as server:
            with_key = server.url.replace("http://", f"http://any:{CANARY}@")
            client = FarmClient(with_key, deadline_s=0.3)
            rewards: List[object] = [FarmReward(with_key, on_no_result="raise"), AsyncFarmReward(with_key)]
            for thing in (client, client._transport.key, *rewards):
                self.assertNotIn("canary", repr(thing) + str(thing) + repr(pickle.dumps(thing)))
            # A proxy that repeats the header in its complaint.
            echo = f"bad header Bearer {CANARY}"
            scripts = [
                [refuse(401, "unauthorized", echo)],
                [refuse(403, CANARY, echo)],
                [refuse(500, "x", echo)] * 9,
                [refuse(302, "moved", echo, Location=f"http://any:{CANARY}@else")],
                [drop] * 9,
                [says(f'{{"rewards": "{CANARY}"}}'.encode())],
                [says(CANARY.encode())],
            ]
            for number, script in enumerate(scripts):
                with self.subTest(number), self.assertRaises(FarmError) as caught:
                    server.script = list(script)
                    client.score(["p"], ["good"])
                server.script = []
                self.assertNotIn("canary", said(caught.exception))
            gone: List[Callable[[], object]] = [
                lambda: FarmClient(f"http://any:{CANARY}@127.0.0.1:1", deadline_s=0.1).score(["p"], ["x"]),
                lambda: FarmClient(f"http://any:{CANARY}@name.invalid", deadline_s=0.1).score(["p"], ["x"]),
                lambda: list(iter_results(with_key, "unknown")),
                lambda: list(iter_results(f"http://any:{CANARY}@127.0.0.1:1", "r", patience_s=0.1)),
            ]
            for number, call in enumerate(gone):
                with self.subTest(f"gone {number}"), self.assertRaises(FarmError) as caught:
                    call()
                self.assertNotIn("canary", said(caught.exception))

    def test_a_401_without_a_key_says_where_to_put_it(self) -> None:
        with StubServer() as server, mock.patch.dict(os.environ), self.assertRaises(FarmError) as caught:
            os.environ.pop("FARM_API_KEY", None)
            server.script = [refuse(401, "unauthorized", "no key was sent")]
            FarmClient(server.url).score(["p"], ["good"])
        self.assertIn("FARM_API_KEY", caught.exception.hint or "")


def said(error: BaseException) -> str:
    """All that anybody could read: text, representation, attributes, chained exceptions, the pickle."""
    chain = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    # The source lines of this file name the canary's variable, not its value.
    return chain + repr(error) + repr(vars(error)) + repr(error.__context__) + repr(pickle.dumps(error))
