"""The notebooks of the site that runs in a browser hold what the pages of Start have."""

import doctest
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
LITE = runpy.run_path(str(DOCS / "lite.py"))


@pytest.mark.parametrize("page", LITE["PAGES"])
def test_a_notebook_installs_pullback_and_has_every_example_of_its_page(page):
    cells = LITE["of_page"](DOCS / page)
    install, *code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    assert install == "%pip install pullback"
    examples = doctest.DocTestParser().get_examples((DOCS / page).read_text())
    assert "\n".join(code) == "\n".join(example.source.strip() for example in examples)
    # A notebook shows the value of the last line of a cell alone.
    ends = {line for cell in code for line in cell.splitlines()[-1:]}
    assert {e.source.splitlines()[-1].strip() for e in examples if e.want} <= {
        *map(str.strip, ends)
    }


@pytest.mark.parametrize("page", LITE["PAGES"])
def test_a_notebook_has_no_prompts_and_no_links_to_other_pages(page):
    text = "\n".join(cell["source"] for cell in LITE["of_page"](DOCS / page))
    assert ">>> " not in text
    assert "](" not in text
    assert text.count("\n## ") == (DOCS / page).read_text().count("\n## ") > 2
