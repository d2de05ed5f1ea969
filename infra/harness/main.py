"""Starts the nursery. Nothing else stands here: a script's bytecode is never cached, a module's is."""

import gc
import sys

# Nothing of what is loaded here is garbage.
gc.disable()
del sys.modules["gc"]
# What a plain start has in memory: `import` does not look for these in the script's folder either.
started = frozenset(sys.modules)
# A name that no candidate's file has, so that `import wire` in a check still means the check's own.
package = type(sys)("_rollout_farm")
package.__path__ = [sys.path.pop(0)]
package.started = started
sys.modules["_rollout_farm"] = package

from _rollout_farm.bundle import load  # noqa: E402

load()

from _rollout_farm.nursery import main  # noqa: E402

main()
