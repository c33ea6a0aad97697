"""Write the notebooks of the site that runs in a browser, from the pages of the section Start.

    python docs/lite.py FOLDER

`make lite` builds the site. A page of `start` becomes a notebook of its text and its examples; a
program of the gallery becomes what Sphinx-Gallery makes of it. What they print is not kept: a
reader runs them.
"""

from __future__ import annotations

import doctest
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGES = ("start/first-program.md", "start/own-operation.md")
PROGRAM = "gallery/own_relu_network.py"
KERNEL = {"kernelspec": {"name": "python", "display_name": "Python (Pyodide)"}}
INSTALL = "%pip install pullback"  # the wheel that is part of the site

EXAMPLES = re.compile(r"^```pycon\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")  # to another page, which is not there


def cell(kind, text):
    """Return a cell of a notebook: "markdown", or "code" that has not run."""
    more = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.strip(), **more}


def of_page(path):
    """Return the cells of a Markdown page: a cell of its examples ends with what is printed."""
    cells = [cell("code", INSTALL)]
    for i, part in enumerate(EXAMPLES.split(path.read_text())):  # text, and in between examples
        code = ""
        for example in doctest.DocTestParser().get_examples(part) if i % 2 else ():
            code += example.source
            if example.want:
                cells.append(cell("code", code))
                code = ""
        if code:
            cells.append(cell("code", code))
        if i % 2 == 0 and part.strip():
            cells.append(cell("markdown", LINK.sub(r"\1", part)))
    return cells


def of_program(path):
    """Return the cells of a program of the gallery."""
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    settings = {**DEFAULT_GALLERY_CONF, "first_notebook_cell": INSTALL}
    return jupyter_notebook(split_code_and_text_blocks(path)[1], settings, path.parent)["cells"]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cells_of = {page: of_page(HERE / page) for page in PAGES}
    for name, cells in (cells_of | {PROGRAM: of_program(HERE / PROGRAM)}).items():
        notebook = {"cells": cells, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 4}
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        (folder / f"{Path(name).stem}.ipynb").write_text(text)


if __name__ == "__main__":
    main()
