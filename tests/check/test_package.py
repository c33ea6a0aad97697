"""The package `pullback.check`: what imports what, and what is loaded when."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.test_layout import imports_of, lines_of

import pullback as pb

SRC = Path(pb.__file__).parent
CHECK = SRC / "check"
FILES = sorted(CHECK.rglob("*.py"))

# As the package's docstring lists them: a group imports from itself and from those above it.
GROUPS = (
    {"deadline", "values"},
    {"numerical", "report", "subject"},
    {"comparison", "session", "sizes"},
    {"explain"},
    {"repair"},
    {"properties"},
    {"inputs"},
    {"api", "runner"},
    {"discovery"},
)
RANK = {name: rank for rank, group in enumerate(GROUPS) for name in group}


def used_by(path):
    """Return the modules and packages of the checker that a file imports."""
    found = (dotted.split(".") for _, dotted, _ in imports_of(path))
    return {parts[2] for parts in found if parts[:2] == ["pullback", "check"] and len(parts) > 3}


def test_imports_point_to_the_groups_above():
    for path in FILES:
        own = path.relative_to(CHECK).parts[0].removesuffix(".py")
        below = {name for name in used_by(path) if RANK[name] > RANK.get(own, len(GROUPS))}
        assert not below, f"{own} imports them"


def test_nothing_else_imports_the_modules_of_the_checker():
    users = {p for p in SRC.rglob("*.py") if CHECK not in p.parents and used_by(p)}
    assert users == {SRC / "cli.py"}  # the pytest plugin loads by name


def test_the_checker_is_loaded_when_it_is_used():
    program = (
        "import sys, pullback as pb\n"
        "print([m for m in sys.modules if m.startswith('pullback.check.')])\n"
        "pb.check.PARTS\n"
        "print('pullback.check.properties.first' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.split("\n")[:2] == ["[]", "True"], run.stderr


def test_the_public_names_are_listed_and_others_refused():
    assert set(pb.check.__all__) <= set(dir(pb.check))
    for name in pb.check.__all__:
        assert getattr(pb.check, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        pb.check.absent  # noqa: B018


# -- how large it is, and which words it knows -----------------------------------------------------
MOST = {
    "lines": 8_803,
    "files": 37,
    "lines of a file": 396,
    "lines of a function": 38,
    "calls of re": 4,
    "lists of words": 0,
}
WORD = re.compile(r"[a-z]{3,}")
WORDS = 4  # of a list, at most


class Reader(ast.NodeVisitor):
    """Collects what a file lists: literal collections, split strings and patterns of many words.

    A word is a lower-case string of three letters or more. Rows of a table are calls, which have a
    word each, and a dict that a function fills with values is no list. Docstrings, messages,
    ``__all__`` and imports are none either.
    """

    def __init__(self, source, path=""):
        self.lists, self.calls_of_re, self.functions, self.inside = [], 0, {}, False
        self.path = path
        self.visit(ast.parse(source))

    def add(self, node, words):
        if len(words) > WORDS:
            self.lists.append(f"{self.path}:{node.lineno}: {' '.join(words)}")
        else:
            self.generic_visit(node)

    def visit_Tuple(self, node):
        self.add(node, words_of(node))

    visit_List = visit_Set = visit_Tuple  # noqa: N815 (ast's names)

    def visit_Dict(self, node):
        constant = all(isinstance(v, (ast.Constant, ast.Tuple, ast.List)) for v in node.values)
        self.add(node, words_of(node) if constant or not self.inside else [])

    def visit_Call(self, node):
        called = ast.unparse(node.func)
        is_pattern = called.startswith("re.")
        self.calls_of_re += is_pattern
        texts = node.args[:1] if is_pattern else []
        texts += [node.func.value] if called.endswith(".split") else []
        strings = [n.value for t in texts for n in ast.walk(t) if isinstance(n, ast.Constant)]
        self.add(node, [w for text in strings for w in WORD.findall(str(text))])

    def visit_Constant(self, node):  # alternatives, wherever they are put into a pattern
        alternatives = node.value.split("|") if isinstance(node.value, str) else []
        self.add(node, [word for word in alternatives if WORD.fullmatch(word)])

    def visit_Assign(self, node):
        if ast.unparse(node.targets[0]) != "__all__":
            self.generic_visit(node)

    def visit_FunctionDef(self, node):
        self.functions[f"{self.path}:{node.name}"] = lines_of(node)
        before, self.inside = self.inside, True
        self.generic_visit(node)
        self.inside = before


def words_of(node):
    """Return the words of a literal collection, and of those in it."""
    if isinstance(node, ast.Constant):
        return [node.value] if WORD.fullmatch(str(node.value)) else []
    if isinstance(node, ast.Dict):
        items = [*filter(None, node.keys), *node.values]
    else:
        items = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else []
    return [word for item in items for word in words_of(item)]


def test_the_checker_stays_small_and_knows_no_vocabulary():
    texts = {path.relative_to(CHECK).as_posix(): path.read_text() for path in FILES}
    readers = [Reader(text, path) for path, text in texts.items()]
    lists = [found for reader in readers for found in reader.lists]
    lines = {path: len(text.splitlines()) for path, text in texts.items()}
    functions = {name: n for reader in readers for name, n in reader.functions.items()}
    found = {
        "lines": sum(lines.values()),
        "files": len(FILES),
        "lines of a file": max(lines.values()),
        "lines of a function": max(functions.values()),
        "calls of re": sum(reader.calls_of_re for reader in readers),
        "lists of words": len(lists),
    }
    longest = sorted(lines, key=lines.get)[-3:], sorted(functions, key=functions.get)[-3:]
    assert {what: n for what, n in found.items() if n > MOST[what]} == {}, (longest, *lists)


@pytest.mark.parametrize(
    "source",
    [
        '_UNITS = ("kilogram", "tonne", "litre", "gram", "mole")',
        '_UNITS = [("kilogram", 1), ("tonne", 2), ("litre", 3), ("gram", 4), ("mole", 5)]',
        'def f():\n    return "kilogram tonne litre gram mole".split()',
        'def f(x):\n    return re.match(r"kilo(gram)?|tonne|litre|mole|inch", x)',
        '_UNITS = "kilogram|tonne|litre|gram|mole"',
    ],
)
def test_a_list_of_more_than_four_words_is_found_however_it_is_written(source):
    assert len(Reader(source).lists) == 1


def test_rows_of_a_table_values_by_name_and_messages_are_no_lists():
    source = """
__all__ = ["one", "two", "three", "four", "five", "six"]
TABLE = (Row("one", f), Row("two", f), Row("three", f), Row("four", f), Row("five", f))
def f(self):
    "one two three four five six"
    return {"one": self.a, "two": self.b, "three": self.c, "four": self.d, "five": self.e}
"""
    assert Reader(source).lists == []
