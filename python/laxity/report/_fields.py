"""Objects of JSON whose fields are what they should be, or an error that names the file and the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laxity.report._files import ResultsError, table

KINDS = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    dict: "an object",
    list: "a list",
}


class Fields:
    """An object of JSON, and where it is from."""

    def __init__(self, where: str, values: dict[str, Any]) -> None:
        self._where = where
        self._values = values

    @classmethod
    def read(cls, path: Path) -> Fields:
        """The object in a file. Raises ResultsError if there is none."""
        return cls(str(path), table(path))

    @property
    def values(self) -> dict[str, Any]:
        """The object itself."""
        return self._values

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def text(self, key: str) -> str:
        """A text."""
        return str(self._of(key, str))

    def whole(self, key: str) -> int:
        """A whole number."""
        return int(self._of(key, int))

    def number(self, key: str) -> float:
        """A number."""
        return float(self._of(key, int, float))

    def inner(self, key: str) -> Fields:
        """An object."""
        return Fields(f"{self._where}: {key}", self._of(key, dict))

    def each(self, key: str) -> list[Fields]:
        """A list of objects; empty where there is no such field."""
        if key not in self:
            return []
        items = self._of(key, list)
        for number, item in enumerate(items):
            if not isinstance(item, dict):
                raise ResultsError(f"{self._where}: {key}[{number}] is {item!r}, not an object")
        return [Fields(f"{self._where}: {key}[{number}]", item) for number, item in enumerate(items)]

    def maybe(self, key: str) -> int | None:
        """A whole number, or None where there is none."""
        return self.whole(key) if key in self else None

    def _of(self, key: str, *kinds: type) -> Any:
        value = self._values.get(key)
        # In Python a bool is an int, in JSON it is not.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = KINDS[kinds[-1]]
            what = "is missing" if value is None else f"is {value!r}"
            raise ResultsError(f'{self._where}: "{key}" {what}; it should be {wanted}')
        return value
