"""Objects that one side has told the other of, by number. For good: a number must not come to mean another object."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List


class Lent:
    def __init__(self) -> None:
        self._values: List[Any] = []
        self._numbers: Dict[int, int] = {}

    def number(self, value: Any) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._values)
            self._values.append(value)
        return number

    def __contains__(self, value: Any) -> bool:
        return id(value) in self._numbers

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, number: int) -> Any:
        return self._values[number]
