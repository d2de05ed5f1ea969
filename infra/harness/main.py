"""Starts the nursery. Nothing else stands here: a script's bytecode is never cached, a module's is."""

import sys
import types

# A name that no candidate's file has, so that `import wire` in a check still means the check's own.
package = types.ModuleType("_rollout_farm")
package.__path__ = [sys.path.pop(0)]
sys.modules["_rollout_farm"] = package

from _rollout_farm.nursery import main  # noqa: E402

main()
