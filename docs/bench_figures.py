"""Write the figures of benchmarks.md, from what `make bench` recorded.

Each file of `recorded/bench` is one benchmark: when and where it ran, and pullback's figure by that
of each peer. Columns called NumPy compare with the calculation in NumPy alone, which records
nothing: they are shown, but no row counts as lost for them.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "recorded" / "bench"
BARE = "NumPy"


def write(folder):
    """Write the figures where benchmarks.md includes them from."""
    path = folder / "project" / "bench-figures.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text())


def names():
    """Return the names of the benchmarks, in the order in which `make bench` runs them."""
    makefile = (ROOT / "Makefile").read_text()
    return re.search(r"^BENCHMARKS := (.*)$", makefile, re.MULTILINE)[1].split()


def record(name):
    return json.loads((RECORDS / f"{name}.json").read_text())


def worst(ratios):
    """Return the largest ratio of a row to a peer, as the tables show it."""
    return max((round(r, 2) for peer, r in ratios.items() if not peer.endswith(BARE)), default=0)


def loses(ratios):
    return worst(ratios) > 1


def text():
    """Return the figures as Markdown."""
    records = {name: record(name) for name in names()}
    lines = ["## When and where", "", *places(records), "", "## Rows where pullback loses", ""]
    lines += [*summary(records), ""]
    for heading, losing in (("", True), ("## The other rows", False)):
        lines += [heading, ""] if heading else []
        for name, found in records.items():
            rows = {row: r for row, r in found["ratios"].items() if loses(r) is losing}
            if losing:
                rows = dict(sorted(rows.items(), key=lambda item: -worst(item[1])))
            if rows:
                lines += [f"### {name}.py, rows that {'' if losing else 'do not '}lose", ""]
                lines += [about(name), "", *table(rows), ""]
    return "\n".join(lines)


def places(records):
    """Return a line for each day and machine, with what ran there."""
    benchmarks = {}
    for name, found in records.items():
        versions = ", ".join(f"{library} {v}" for library, v in found["versions"].items())
        where = f"{found['processor']}, {found['system']}, Python {found['python']}, {versions}"
        benchmarks.setdefault(f"{found['date']}: {where}", []).append(name)
    return [f"* {place}: {', '.join(several)}" for place, several in benchmarks.items()]


def summary(records):
    """Return the table of how many rows lose, and by how much."""
    lines = ["| benchmark | rows | that lose | the worst | its ratio |", "|---|---|---|---|---|"]
    for name, found in records.items():
        rows = found["ratios"]
        last = max(rows, key=lambda row: worst(rows[row]))
        count = sum(map(loses, rows.values()))
        lines.append(
            f"| {name} | {len(rows)} | {count} | {plain(last)} | {worst(rows[last]):.2f} |"
        )
    return lines


def about(name):
    """Return what the first line of a benchmark says it measures."""
    docstring = ast.get_docstring(ast.parse((ROOT / "bench" / f"{name}.py").read_text()))
    return docstring.partition("\n")[0]


def table(rows):
    """Return the table of some rows: a column for each peer, what is above 1 in bold."""
    peers = list(dict.fromkeys(peer for ratios in rows.values() for peer in ratios))
    lines = [f"| | {' | '.join(peers)} |", "|---" * (len(peers) + 1) + "|"]
    for row, ratios in rows.items():
        cells = [shown(ratios[peer]) if peer in ratios else "" for peer in peers]
        lines.append(f"| {plain(row)} | {' | '.join(cells)} |")
    return lines


def shown(ratio):
    return f"**{ratio:.2f}**" if round(ratio, 2) > 1 else f"{ratio:.2f}"


def plain(name):
    """Return a name as Markdown that shows it as it is."""
    return re.sub(r"([\\*_|\[\]<>`])", r"\\\1", name)
