"""What the package may import: the standard library, and for its core no trainer's part."""

from __future__ import annotations

import ast
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Set, Tuple

PACKAGE = Path(__file__).resolve().parents[1] / "rollout_farm"


def imports(file: Path) -> Tuple[Set[str], Set[str]]:
    """(packages, modules of our own)"""
    packages: Set[str] = set()
    own: Set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            packages.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            packages.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            own.add(node.module or "")
    return packages, own


class House(unittest.TestCase):
    def test_it_imports_in_a_python_that_has_nothing_else(self) -> None:
        # -I and -S: no site-packages, no folder of the caller's.
        names = sorted(file.stem for file in PACKAGE.glob("*.py") if file.stem != "__init__")
        code = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import rollout_farm"
        code += "".join(f"; import rollout_farm.{name}" for name in names)
        subprocess.run([sys.executable, "-I", "-S", "-B", "-c", code], check=True)
        self.assertIn("client", names)

    def test_the_core_knows_no_trainer(self) -> None:
        for name in ("client", "results", "transport", "attempts", "address", "wire", "errors"):
            packages, own = imports(PACKAGE / f"{name}.py")
            self.assertFalse({"trl", "verl"} & (packages | own), name)

    def test_it_is_typed(self) -> None:
        self.assertTrue((PACKAGE / "py.typed").is_file())
        for file in PACKAGE.glob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    arguments = [*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs]
                    bare = [one.arg for one in arguments if one.annotation is None and one.arg not in ("self", "cls")]
                    self.assertEqual([], bare, f"{file.name}: {node.name}")
                    self.assertIsNotNone(node.returns, f"{file.name}: {node.name}")
