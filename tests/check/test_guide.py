"""The tables of docs/gradient-checker.md: every part and every cause, and no others."""

import re
from pathlib import Path

from tests.check.zoo import WRONG

from pullback.check import PARTS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "gradient-checker.md").read_text()
ROW = re.compile(r"^\| `([a-z_-]+)` \|", re.MULTILINE)
CAUSE = re.compile(r"Cause\(\s*\"([a-z-]+)\"")


def rows(heading):
    return ROW.findall(GUIDE.split(f"\n{heading}\n")[1].split("\n## ")[0])


def test_the_table_of_parts_lists_each_in_order():
    names = [part.name for part in PARTS]
    found = ROW.findall(GUIDE)
    start = found.index(names[0])
    assert found[start : start + len(names)] == names


def test_the_table_of_causes_lists_each_that_the_checker_can_name():
    sources = (ROOT / "src" / "pullback" / "check").rglob("*.py")
    text = "".join(path.read_text() for path in sources)
    listed = rows("## Causes")
    assert set(listed) >= set(CAUSE.findall(text))
    assert [name for name in listed if f'"{name}"' not in text] == []
    assert len(set(listed)) == len(listed)


def test_the_zoo_has_an_animal_for_nearly_every_cause():
    # Those are in properties/test_other_arguments.py: animals are a forward and a backward.
    elsewhere = {"jvp", "vmap"}
    missing = set(rows("## Causes")) - {entry.cause for entry in WRONG} - elsewhere
    assert missing <= {"dtype", "formula"}
