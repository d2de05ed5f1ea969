"""The real trainers, from PyPI, in a cache that is set up once: FARM_INTEROP_CACHE, else the system's cache folder.

Their pins contradict each other, so one environment holds torch and TRL, and the others lie beside it in folders of
their own, with only what the tested path imports.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

BASE = ["torch==2.15.0", "trl==1.16.0", "transformers==5.24.0"]
# name -> (with their dependencies, alone)
SIDES = {
    "openrlhf": (["aiohttp", "pylatexenc"], ["openrlhf==0.11.2"]),
    "verl": (
        [
            *("ray==2.55.0", "tensordict==0.10.0", "pyvers", "orjson", "importlib_metadata", "cloudpickle"),
            *("omegaconf", "hydra-core", "codetiming", "aiohttp", "cachetools", "pandas", "dill"),
        ],
        ["verl==0.9.1"],
    ),
}
NEEDED_GB = 8


def cache() -> Path:
    given = os.environ.get("FARM_INTEROP_CACHE")
    if given:
        return Path(given).resolve()
    home = os.environ.get("XDG_CACHE_HOME") or (
        Path.home() / "Library" / "Caches" if sys.platform == "darwin" else Path.home() / ".cache"
    )
    return Path(home) / "rollout-farm" / "interop"


def base() -> Path:
    """The python that has torch and TRL."""
    folder = cache() / "trl"
    python = folder / "bin" / "python"
    if _ready(folder, BASE):
        return python
    cache().mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache()).free / 2**30
    if free < NEEDED_GB:
        needs = f"{cache()} has {free:.1f} GB free, and torch and TRL need {NEEDED_GB}"
        print(f"{needs}: make room, or name another folder in FARM_INTEROP_CACHE", file=sys.stderr)
        sys.exit(3)
    print(f"setting up torch and TRL in {folder} (6 GB, a few minutes)", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    _pip(python, BASE)
    _mark(folder, BASE)
    return python


def side(name: str) -> Path:
    """A folder for PYTHONPATH. torch and what TRL brought come from the base, by constraint."""
    python, folder = base(), cache() / name
    whole, alone = SIDES[name]
    if _ready(folder, whole + alone):
        return folder
    print(f"setting up {name} in {folder}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    have = subprocess.run([str(python), "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
    constraints = cache() / "constraints.txt"
    constraints.write_text(have)
    # tensordict asks for torch: without its dependencies, it takes the base's.
    for package in [*alone, *(p for p in whole if p.startswith("tensordict"))]:
        _pip(python, ["--target", str(folder), "--no-deps", package])
    rest = [p for p in whole if not p.startswith("tensordict")]
    _pip(python, ["--target", str(folder), "-c", str(constraints), *rest])
    _mark(folder, whole + alone)
    return folder


def environment(path: List[Path]) -> Dict[str, str]:
    """For a trainer's process: no GPU, no downloads, one thread."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(part) for part in path),
        "HF_HUB_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "TRL_EXPERIMENTAL_SILENCE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "ignore",
    }


def _pip(python: Path, args: List[str]) -> None:
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *args], check=True)


def _stamp(packages: List[str]) -> str:
    return hashlib.sha256("\n".join([*packages, sys.version]).encode()).hexdigest()


def _ready(folder: Path, packages: List[str]) -> bool:
    mark = folder / ".farm-interop"
    return mark.is_file() and mark.read_text() == _stamp(packages)


def _mark(folder: Path, packages: List[str]) -> None:
    (folder / ".farm-interop").write_text(_stamp(packages))
