"""veRL's own way from its configuration to a reward: hydra, load_reward_manager, the naive manager's run_single.

No Ray cluster and no GPU: DataProto is filled by hand, as the agent loop fills it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, List

import numpy
import torch
import verl
from hydra import compose, initialize_config_dir
from rollout_farm import NoResult
from verl import DataProto
from verl.trainer.ppo.reward import load_reward_manager

from farm import decision
from lossy import Lossy

URL = os.environ["FARM_URL"]
RIGHT, WRONG = decision("permit"), decision("deny")
FUNCTION = "reward.custom_reward_function"


class Characters:
    def decode(self, ids: Any, skip_special_tokens: bool) -> str:
        return "".join(chr(int(i)) for i in ids)


def manager(url: str, *more: str) -> Any:
    """With the lines that a user adds to main_ppo's."""
    folder = str(Path(verl.__file__).parent / "trainer" / "config")
    lines = [f"{FUNCTION}.path=pkg://rollout_farm.verl", f"+{FUNCTION}.reward_kwargs.url={url}", *more]
    with initialize_config_dir(config_dir=folder, version_base=None):
        return load_reward_manager(compose("ppo_trainer", overrides=lines), Characters())


def sample(text: str) -> DataProto:
    ids = torch.tensor([[ord(c) for c in text]])
    prompt = torch.zeros((1, 4), dtype=torch.long)
    tensors = {
        "prompts": prompt,
        "responses": ids,
        "attention_mask": torch.ones((1, 4 + ids.shape[1]), dtype=torch.long),
    }
    rows = {
        "data_source": "grants",
        "reward_model": {"style": "rule", "ground_truth": "permit"},
        "extra_info": {"index": numpy.int64(3), "split": "train"},
        "__num_turns__": numpy.int32(2),
    }
    columns = {}
    for name, value in rows.items():
        columns[name] = numpy.empty(1, dtype=object)
        columns[name][0] = value
    return DataProto.from_dict(tensors=tensors, non_tensors=columns)


async def scores(of: Any, texts: List[str]) -> List[Any]:
    answers = await asyncio.gather(*(of.run_single(sample(text)) for text in texts), return_exceptions=True)
    return [answer if isinstance(answer, BaseException) else answer["reward_score"] for answer in answers]


def check(name: str, holds: bool, **figures: Any) -> None:
    print(json.dumps({"check": name, "ok": bool(holds), **figures}), flush=True)
    if not holds:
        sys.exit(1)


async def main() -> None:
    config = f"+{FUNCTION}.reward_kwargs.config=grant"
    naive = manager(URL, config)
    check("the naive manager awaits the function", naive.is_async_reward_score)
    right, wrong, none = await scores(naive, [RIGHT, WRONG, "I do not know"])
    check(
        "right above wrong above unreadable, which earns the floor",
        right > wrong > none == -1.0,
        rewards=[right, wrong, none],
    )

    answer = await naive.run_single(sample(RIGHT))
    check(
        "its extra keys are the same for all, and acc is none of them",
        answer["reward_extra_info"] == {"score": right, "no_result": 0.0},
    )

    began = time.monotonic()
    texts = [RIGHT if i % 2 else WRONG for i in range(512)]
    got = await scores(naive, texts)
    check(
        "512 samples at once",
        got == [right if i % 2 else wrong for i in range(512)],
        seconds=round(time.monotonic() - began, 2),
    )

    lossy = Lossy(URL, 0.3)
    got = await scores(manager(lossy.url, config), [RIGHT] * 200)
    raised = sum(isinstance(one, NoResult) for one in got)
    check(
        "what is lost raises, its siblings have their reward",
        raised == lossy.lost and got.count(right) == 200 - raised > 0,
        lost=raised,
    )

    floored = await scores(manager(lossy.url, config, f"+{FUNCTION}.reward_kwargs.floor=-1"), [RIGHT] * 50)
    check("with a floor nothing raises", set(floored) == {right, -1.0})


asyncio.run(main())
