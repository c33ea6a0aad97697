"""Every case of the list has a test in this folder that carries its id in its name.

The ids of the gradient checker (GC) and of checkpointing (CK) belong to other folders.
"""

import ast
import re
from pathlib import Path

# fmt: off  (a theme a line, as in the list)
CASES = frozenset(
    {
        "F01",
        "F02",
        "F03",
        "F04",
        "F05",
        "F06",
        "F07",
        "F08",
        "F09",
        "F10",
        "F11",
        "F12",
        "F13",
        "F14",
        "F15",
        "F16",
        "F17",
        "F18",
        "F19",
        "F20",
        "F21",
        "N01",
        "N02",
        "N03",
        "ND1",
        "ND2",
        "ND3",
        "ND4",
        "MD1",
        "MD2",
        "MD3",
        "MD4",
        "MD5",
        "MD6",
        "MD7",
        "MG1",
        "MG2",
        "S01",
        "S02",
        "S03",
        "S04",
        "S05",
        "S06",
        "S07",
        "S08",
        "S09",
        "S10",
        "S11",
        "S12",
        "V01",
        "V02",
        "V03",
        "V04",
        "V05",
        "V06",
        "V07",
        "V08",
        "V09",
        "VW1",
        "VW2",
        "VW3",
        "VW4",
        "VW5",
        "VW6",
        "VW7",
        "VW8",
        "VW9",
        "VW10",
        "VW11",
        "H01",
        "H02",
        "H03",
        "H04",
        "H05",
        "H06",
        "H07",
        "H08",
        "H09",
        "H10",
        "H11",
        "H12",
        "RG1",
        "RG2",
        "RG3",
        "RG4",
        "RG5",
        "G01",
        "G02",
        "G03",
        "G04",
        "G05",
        "B01",
        "B02",
        "B03",
        "B04",
        "B05",
        "B06",
        "B07",
        "B08",
        "B09",
        "B10",
        "B11",
        "B12",
        "B13",
        "B14",
        "B15",
        "B16",
        "B17",
        "AC1",
        "AC2",
        "AC3",
        "AC4",
        "AC5",
        "HO1",
        "HO2",
        "HO3",
        "DG1",
        "DG2",
        "DG3",
        "DG4",
        "RE1",
        "RE2",
        "RE3",
        "RE4",
        "RE5",
        "MT1",
        "MT2",
        "AN1",
        "AN2",
        "AN3",
        "L01",
        "L02",
        "L03",
        "L04",
        "L05",
        "L06",
        "L07",
        "IX1",
        "IX2",
        "NU1",
        "NU2",
        "NU3",
        "NU4",
        "NU5",
    }
)
# fmt: on


def cases_tested(folder: Path) -> set[str]:
    """Read the ids off the names of the test functions, without importing anything."""
    found = set()
    for path in sorted(folder.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                found.update(re.findall(r"^test_([A-Z]+[0-9]+)_", node.name))
    return found


def test_every_case_has_a_test() -> None:
    assert CASES - cases_tested(Path(__file__).parent) == set()


def test_no_test_carries_an_unknown_id() -> None:
    known_elsewhere = re.compile(r"(GC|CK)[0-9]+")
    tested = cases_tested(Path(__file__).parent)
    assert {case for case in tested - CASES if not known_elsewhere.fullmatch(case)} == set()


def test_the_list_is_complete() -> None:
    assert len(CASES) == 144
