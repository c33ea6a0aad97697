"""Reading the rows of a table: names, a colon, the text; lines that are indented go on with it."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["rows"]


def rows(text: str) -> Iterator[tuple[list[str], str]]:
    """Return the names and the text of each row."""
    for row in text.strip().replace("\n    ", " ").splitlines():
        names, _, way = row.partition(": ")
        yield names.split(), way
