"""`npm run test:interop [NAME…]`: the real trainers against the product. Ends with OK or names what does not hold."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import venvs
from farm import CHECKOUT, farm

HERE = Path(__file__).resolve().parent
CLIENT = CHECKOUT / "clients" / "python"
SCRIPTS = {
    "client": "client_results.py",
    "trl": "trl_grpo.py",
    "openrlhf": "openrlhf_reward.py",
    "verl": "verl_reward.py",
}
SCRIPT_S = 900


def main() -> int:
    names = sys.argv[1:] or list(SCRIPTS)
    for name in names:
        if name not in SCRIPTS:
            print(f"{name}: unknown; there are {', '.join(SCRIPTS)}", file=sys.stderr)
            return 2
    python = venvs.base() if set(names) - {"client"} else Path(sys.executable)
    sides = {name: [venvs.side(name)] if name in venvs.SIDES else [] for name in names}
    failed = []
    with farm() as address:
        for name in names:
            began = time.monotonic()
            environment = {**venvs.environment([HERE, CLIENT, *sides[name]]), **address}
            command = [str(python), str(HERE / SCRIPTS[name])]
            try:
                code = subprocess.run(command, env=environment, timeout=SCRIPT_S, check=False).returncode
            except subprocess.TimeoutExpired:
                code = -1
            print(f"{name}: {'ok' if code == 0 else 'FAILED'} in {time.monotonic() - began:.0f} s", flush=True)
            if code != 0:
                failed.append(name)
    print("OK" if not failed else f"SHORT {', '.join(failed)}")
    return 1 if failed else 0


sys.exit(main())
