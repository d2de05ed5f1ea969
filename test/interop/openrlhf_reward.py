"""OpenRLHF's SingleTurnAgentExecutor, unmodified, from its prompt to the reward that it read from /get_reward.

Only the engine and the tokenizer are ours: they say what a model would, with the special tokens that it would.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from types import SimpleNamespace
from typing import Any, List

import torch
from openrlhf.utils.agent import SingleTurnAgentExecutor

from farm import decision

HOST = os.environ["FARM_URL"].split("//")[1]
URL = f"http://any:{os.environ['FARM_API_KEY']}@{HOST}/get_reward"
RIGHT, WRONG = decision("permit"), decision("deny")
FLOOR = -1.0
# The prompt shows a decision of its own, which must not be taken for the answer.
PROMPT = f"<|im_start|>user\nDecide the case. Example: {WRONG}<|im_end|>\n<|im_start|>assistant\n"


class Characters:
    """A tokenizer whose tokens are characters."""

    def __call__(self, text: str, **_: Any) -> Any:
        return {"input_ids": torch.tensor([[ord(c) for c in text]])}

    def decode(self, ids: List[int], skip_special_tokens: bool) -> str:
        assert not skip_special_tokens
        return "".join(map(chr, ids))


class Engine:
    def __init__(self, completion: str) -> None:
        self.completion = completion

    async def generate(self, prompt_ids: List[int], parameters: Any, **_: Any) -> Any:
        ids = [ord(c) for c in f"{self.completion}<|im_end|>"]
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=ids, finish_reason="stop", logprobs=None)])


async def reward_of(executor: Any, completion: str, label: Any = "permit", max_length: int = 4096) -> Any:
    parameters = SimpleNamespace(max_tokens=300, logprobs=None)
    return await executor.execute(PROMPT, label, parameters, max_length, Characters(), Engine(completion))


def check(name: str, holds: bool, **figures: Any) -> None:
    print(json.dumps({"check": name, "ok": bool(holds), **figures}), flush=True)
    if not holds:
        sys.exit(1)


async def main() -> None:
    executor = SingleTurnAgentExecutor(URL)
    right, wrong, none = [await reward_of(executor, text) for text in (RIGHT, WRONG, "I do not know")]
    rewards = [answer["reward"] for answer in (right, wrong, none)]

    def single(value: Any) -> float:
        return float(value[0] if isinstance(value, list) else value)

    right, wrong, none = map(single, rewards)
    check(
        "right above wrong above unreadable, which earns the floor",
        right > wrong > none == FLOOR,
        rewards=[right, wrong, none],
    )

    short = await reward_of(executor, RIGHT, max_length=340)
    check("a prompt that was cut on the left is still told from the answer", single(short["reward"]) == right)

    unlabelled = await reward_of(executor, RIGHT, label="")
    check(
        "a sample without a label has its reward too",
        single(unlabelled["reward"]) > FLOOR,
        reward=single(unlabelled["reward"]),
    )

    began = time.monotonic()
    texts = [RIGHT if i % 2 else WRONG for i in range(512)]
    answers = await asyncio.gather(*(reward_of(executor, text) for text in texts))
    seconds = time.monotonic() - began
    got = [None if answer["reward"] is None else single(answer["reward"]) for answer in answers]
    check(
        "512 samples at once, a connection each",
        got == [right if i % 2 else wrong for i in range(512)],
        seconds=round(seconds, 2),
    )

    both = SingleTurnAgentExecutor([URL, URL])
    two = [single((await reward_of(both, RIGHT))["reward"]) for _ in range(2)]
    check("several addresses take turns", two == [right, right])

    dead = await reward_of(SingleTurnAgentExecutor(f"{URL}?config=dead"), RIGHT)
    check("no result is the floor, never null", single(dead["reward"]) == FLOOR == single(dead["scores"]))
    dead = await reward_of(SingleTurnAgentExecutor(f"{URL}?config=dead&no_result=filter"), RIGHT)
    far = single(dead["scores"])
    check("or a score far outside any range", single(dead["reward"]) == FLOOR and abs(far) > 1e6, scores=far)


asyncio.run(main())
