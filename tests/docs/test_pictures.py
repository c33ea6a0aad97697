"""The pictures of the documents are what their program draws."""

import importlib.util
import re
import xml.etree.ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pictures():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_is_as_its_program_draws_it(pictures):
    files = {path.stem: path.read_text() for path in pictures.IMAGES.iterdir()}
    assert files == {name: pictures.drawn(name) for name in pictures.PICTURES}, (
        "run docs/pictures.py"
    )


def test_a_picture_is_svg_with_a_title_and_stays_inside_its_page(pictures):
    for path in pictures.IMAGES.iterdir():
        root = xml.etree.ElementTree.parse(path).getroot()
        assert root.find("{http://www.w3.org/2000/svg}title").text
        _, _, width, height = map(float, root.get("viewBox").split())
        for element in root.iter():
            places = {
                k: float(v) for k, v in element.attrib.items() if re.fullmatch("[xy][12]?", k)
            }
            assert all(0 <= v <= (width if k[0] == "x" else height) for k, v in places.items())


def test_every_picture_is_shown_in_a_document(pictures):
    shown = "".join(path.read_text() for path in ROOT.glob("docs/*.md"))
    for name in pictures.PICTURES:
        assert f"(images/{name}.svg)" in shown
