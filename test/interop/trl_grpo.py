"""TRL's own GRPOTrainer on a CPU, with a tiny model made here and rewards from the farm.

Each word of the vocabulary is a whole decision; one of them is certified and right. The mean reward must rise to what
the right one earns: with every reward there, and with three in ten members lost on the way.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import sys
import tempfile
import warnings
from typing import Any, Dict, List

import torch
from datasets import Dataset
from rollout_farm import AsyncFarmReward, FarmReward, FarmUnavailable
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, PrinterCallback, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

from farm import decision, rollout_worker
from lossy import Lossy

logging.getLogger("trl").setLevel(logging.ERROR)  # it names every sample that has no reward
URL = os.environ["FARM_URL"]
STEPS, BATCH, GROUP = 60, 32, 8
RIGHT = decision("permit")
WORDS = [
    RIGHT,
    decision("deny"),
    decision("permit", age=12),
    decision("deny", age=12),
    decision("permit", annual_income=90000),
    decision("permit", weather="fog"),
    decision("maybe"),
    "<decision>{}</decision>",
    "permit",
    "deny",
]


def model_and_tokenizer(words: List[str]) -> Any:
    vocabulary = {word: i for i, word in enumerate(["<pad>", "<eos>", "<unk>", "case", *words])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    torch.manual_seed(3)
    shape = Qwen2Config(
        vocab_size=len(vocabulary),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(shape), tokenizer


def train(
    rewards: Any, rloo: bool = False, steps: int = STEPS, words: List[str] = WORDS, **more: Any
) -> List[Dict[str, float]]:
    model, tokenizer = model_and_tokenizer(words)
    settings, trainer_class = (RLOOConfig, RLOOTrainer) if rloo else (GRPOConfig, GRPOTrainer)
    with tempfile.TemporaryDirectory() as folder:
        arguments = settings(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            beta=0.0,
            report_to=[],
            save_strategy="no",
            logging_steps=1,
            per_device_train_batch_size=BATCH,
            num_generations=GROUP,
            max_completion_length=1,
            max_steps=steps,
            learning_rate=5e-3,
            lr_scheduler_type="constant",
            disable_tqdm=True,
            seed=5,
            **more,
        )
        data = Dataset.from_dict({"prompt": ["case"] * 64, "gold": ["permit"] * 64, "row": list(range(64))})
        trainer = trainer_class(
            model=model, reward_funcs=rewards, args=arguments, train_dataset=data, processing_class=tokenizer
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        return [entry for entry in trainer.state.log_history if "reward" in entry]


def mean(log: List[Dict[str, float]], key: str = "reward") -> float:
    values = [entry[key] for entry in log if entry.get(key) is not None]
    return sum(values) / len(values)


def check(name: str, holds: bool, **figures: Any) -> None:
    print(json.dumps({"check": name, "ok": bool(holds), **figures}), flush=True)
    if not holds:
        sys.exit(1)


def rises(name: str, log: List[Dict[str, float]], best: float, key: str = "reward", **figures: Any) -> None:
    first, last = mean(log[:5], key), mean(log[-10:], key)
    holds = first < best - 0.3 and last > best - 0.1
    check(name, holds, first5=round(first, 3), last10=round(last, 3), best=round(best, 3), steps=len(log), **figures)


def main() -> None:
    best, wrong = FarmReward(URL, "grant")(prompts=["case"] * 2, completions=[RIGHT, WORDS[1]], gold=["permit"] * 2)
    check("the right decision earns most", best > wrong, right=best, wrong=wrong)

    rises("GRPO, all rewards", train(FarmReward(URL, "grant")), best)

    reward = pickle.loads(pickle.dumps(AsyncFarmReward(URL, "grant", name="again")))
    log = train(reward)
    rises("GRPO, asynchronous, from a pickle, under its own name", log, best)
    check("its metrics carry its name", "rewards/again/mean" in log[-1] and "again/no_result" in log[-1])

    lossy = Lossy(URL, 0.3)
    log = train(FarmReward(lossy.url, "grant"))
    share = lossy.lost / lossy.seen
    logged = mean(log, "farm/no_result/sandbox_lost")
    check(
        "three in ten are lost, and logged by cause",
        0.25 < share < 0.35 and abs(logged / BATCH - share) < 1e-6,
        share=share,
    )
    rises("GRPO, 30% of the members lost", log, best, lost=lossy.lost, members=lossy.seen)

    pair = [AsyncFarmReward(lossy.url, "grant"), AsyncFarmReward(URL, "grant", name="second")]
    log = train(pair, multi_objective_aggregation="normalize_then_sum")
    rises("GRPO, two functions, the first loses 30%", log, best, key="rewards/second/mean")

    log = train(FarmReward(lossy.url, "grant"), rloo=True)
    rises("RLOO, 30% of the members lost", log, best)

    env = {"name": "guess", "config": {"low": 1, "high": 9, "max_guesses": 3}, "seed": 7}
    with rollout_worker():
        log = train(FarmReward(URL, env=env), words=[str(number) for number in range(1, 10)])
    rises("GRPO, each completion an episode at a rollout worker", log, 1.0)

    dead = FarmReward(URL, "dead", deadline_s=5)(prompts=["case"] * 2, completions=[RIGHT, "permit"])
    check("with a verifier that is away only what needs none is judged", dead == [None, -1.0], rewards=dead)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            train(FarmReward("http://127.0.0.1:1", deadline_s=0.2), steps=9)
    except FarmUnavailable:
        check("a farm that stays away ends the run after three calls", True)
    else:
        check("a farm that stays away ends the run after three calls", False)


main()
