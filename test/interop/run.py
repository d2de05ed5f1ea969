"""`npm run test:interop [-- NAME…]`: the real trainers against the product. Ends with OK, or names what does not hold.

`client` needs no more than Python; the trainers are installed from PyPI into a cache at the first time.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Dict

sys.dont_write_bytecode = True

import venvs  # noqa: E402
from farm import CHECKOUT, farm  # noqa: E402

HERE = Path(__file__).resolve().parent
CLIENT = CHECKOUT / "clients" / "python"
SCRIPTS = {
    "client": "client_results.py",
    "trl": "trl_grpo.py",
    "openrlhf": "openrlhf_reward.py",
    "verl": "verl_reward.py",
}
SCRIPT_S = 900


def run(name: str, address: Dict[str, str]) -> str:
    """What became of it."""
    try:
        python = sys.executable if name == "client" else str(venvs.base())
        side = [venvs.side(name)] if name in venvs.SIDES else []
    except subprocess.CalledProcessError:
        return "FAILED: it could not be installed"
    began = time.monotonic()
    environment = {**venvs.environment([HERE, CLIENT, *side]), **address}
    try:
        code = subprocess.run(
            [python, str(HERE / SCRIPTS[name])], env=environment, timeout=SCRIPT_S, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return f"FAILED: it was not done after {SCRIPT_S} s"
    return f"{'ok' if code == 0 else 'FAILED'} in {time.monotonic() - began:.0f} s"


def main() -> int:
    names = sys.argv[1:] or list(SCRIPTS)
    for name in names:
        if name not in SCRIPTS:
            print(f"{name}: unknown; there are {', '.join(SCRIPTS)}", file=sys.stderr)
            return 2
    failed = []
    with farm() as address:
        for name in names:
            said = run(name, address)
            print(f"{name}: {said}", flush=True)
            if said.startswith("FAILED"):
                failed.append(name)
    print("OK" if not failed else f"SHORT {', '.join(failed)}")
    return 1 if failed else 0


sys.exit(main())
