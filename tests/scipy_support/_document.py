"""The lists of docs/scipy.md, from the tables: ``python -m tests.scipy_support._document``."""

import importlib
import textwrap

from tests.scipy_support._expected import FAILING, VALUES

TABLES = ("special", "stats", "signal", "ndimage", "spatial", "others")


def every_call():
    """Return the calls of all functions by name."""
    found = {}
    for name in TABLES:
        found.update(importlib.import_module(f"tests.scipy_support._{name}").CALLS)
    return found


def expected(name):
    """Return what the calls of a function come to: ``gradient``, ``values`` or a reason."""
    return "values" if name in VALUES else FAILING.get(name, "gradient")


def paragraphs(names):
    """Return the names, one paragraph a module."""
    modules = {}
    for name in sorted(names):
        head, mark, bracket = name.partition("[")
        module, _, function = head.rpartition(".")
        modules.setdefault(module, []).append(f"`{function}{mark}{bracket}`")
    text = [f"**{module}**: {', '.join(found)}." for module, found in modules.items()]
    return "\n\n".join(
        textwrap.fill(t, 100, break_long_words=False, break_on_hyphens=False) for t in text
    )


def sections():
    """Return the text under each heading of the lists."""
    groups = {}
    for name in every_call():
        groups.setdefault(expected(name), []).append(name)
    found = {
        "With a gradient": paragraphs(groups.pop("gradient")),
        "Without a gradient by nature": paragraphs(groups.pop("values")),
    }
    refused = [
        f"#### {reason[0].upper()}{reason[1:]}\n\n{paragraphs(groups[reason])}"
        for reason in dict.fromkeys(FAILING.values())
    ]
    found["Refused"] = "\n\n".join(refused)
    return found


if __name__ == "__main__":
    for heading, text in sections().items():
        print(f"### {heading}\n\n{text}\n")
