"""Imports go down only, `import sosbands` stays light, and the public face stays small."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sosbands

PACKAGE = Path(sosbands.__file__).parent

STUDIES = Path(__file__).parents[1] / "studies"
API = Path(__file__).parents[1] / "docs" / "api.md"

# The rooms of the house, from the ground up: each may import those before it, itself, and the foundation.
FOUNDATION = ("_arguments", "_files", "_progress", "_threads", "_types", "_extras", "_words", "exceptions")
ROOMS = ("kernels", "problems", "solvers", "bands", "stats", "metrics", "conformal", "tables", "point_models", "tuning")
ROOMS += ("explanation", "regressors", "saving", "serving", "baselines", "datasets", "comparison", "cluster", "online")
ROOMS += ("plotting", "report", "cli")
# What a room must not know although it lies below: solvers see problems alone, methods are known by their interface,
# statistics know no bands.
STRANGERS = {
    "solvers": {"kernels"},
    "stats": {"kernels", "problems", "solvers", "bands"},
    "metrics": {"kernels", "problems", "solvers", "bands"},
    "conformal": {"problems", "solvers", "bands", "stats", "metrics"},  # kernels say which rows are near
    "tables": set(ROOMS[:6]),  # and reads targets as conformal does
    "point_models": set(ROOMS[1:7]),  # blocks of rows
    "tuning": {"problems", "solvers", "point_models", "tables"},
    "explanation": {"problems", "solvers", "stats", "metrics", "tables", "point_models", "tuning"},
    "datasets": set(ROOMS),
    "comparison": set(ROOMS) - {"conformal", "metrics"},
    "cluster": set(ROOMS) - {"conformal"},
    "online": set(ROOMS) - {"conformal"},
    "plotting": set(ROOMS) - {"metrics"},
}
ALLOWED = {room: set(ROOMS[:k]) - STRANGERS.get(room, set()) for k, room in enumerate(ROOMS)}
ALLOWED |= {room: set() for room in FOUNDATION}
ALLOWED["report"] |= {"__init__"}
ALLOWED["cli"] |= {"__init__"}
ALLOWED["__main__"] = {"cli"}
ALLOWED["__init__"] = set(ROOMS) - {"cluster", "online", "plotting", "report", "cli"}
# What one module may import besides, inside a function only: such imports can make no cycle at import time.
LAZY = {
    "conformal/mixin.py": {"metrics"},  # evaluate; calibration itself needs no metric
    "regressors/split.py": {"saving"},  # save, which knows what regressors consist of
}
ALONE = set(FOUNDATION)  # these import nothing of the package, not even the foundation

FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc"}
HEAVY = ("torch", "cvxpy", "matplotlib", "pandas", "plotly", "polars", "typer", "dask", "distributed", "skops")
HEAVY += ("onnx", "onnxruntime", "skl2onnx")
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path):
    """The first part of a module's path inside the package."""
    return Path(path).parts[0].removesuffix(".py")


def nodes_outside_functions(tree):
    """Nodes that run when the module is imported; class bodies and TYPE_CHECKING blocks count."""
    found, left = [], [tree]
    while left:
        node = left.pop()
        found.append(node)
        left += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return found


def imported_rooms(source, path, nodes=ast.walk):
    """Rooms that a module imports, anywhere in it (inside functions and TYPE_CHECKING blocks too)."""
    parents = ("sosbands", *Path(path).parts[:-1])
    targets = []
    for node in nodes(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets += [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(parents[: len(parents) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            targets += [[*base, alias.name] for alias in node.names]
    inside = [target[1:] for target in targets if target[0] == "sosbands"]
    return {parts[0] if parts and parts[0] in ALLOWED else "__init__" for parts in inside}


def violations(source, path):
    """Rooms that the module at `path` (relative to the package) must not import."""
    room = room_of(path)
    allowed = ALLOWED[room] | {room} | (set() if room in ALONE else set(FOUNDATION))
    lazy = LAZY.get(Path(path).as_posix(), set()) - imported_rooms(source, path, nodes_outside_functions)
    return imported_rooms(source, path) - allowed - lazy


def test_imports_go_down_only():
    sources = {module.relative_to(PACKAGE): module.read_text(encoding="utf-8") for module in MODULES}
    assert {room_of(path) for path in sources} == set(ALLOWED), "a room without a place in the table, or without a file"
    found = {path.as_posix(): violations(source, path) for path, source in sources.items()}
    assert {path: rooms for path, rooms in found.items() if rooms} == {}


@pytest.mark.parametrize(
    ("path", "source", "forbidden"),
    [
        ("kernels/features.py", "from sosbands.bands import learn_bands", {"bands"}),
        ("kernels/features.py", "import sosbands.stats.dependence as h", {"stats"}),
        ("kernels/features.py", "import sosbands", {"__init__"}),
        ("kernels/features.py", "from sosbands import learn_bands", {"__init__"}),
        ("kernels/features.py", "from sosbands import bands", {"bands"}),
        ("kernels/features.py", "from ..bands import learn_bands", {"bands"}),
        ("kernels/features.py", "from .. import metrics", {"metrics"}),
        ("problems/side.py", "def f():\n    from sosbands.solvers import solve", {"solvers"}),
        ("solvers/solve.py", "if TYPE_CHECKING:\n    from sosbands.kernels import Kernel", {"kernels"}),
        ("conformal/scores.py", "from sosbands.metrics import coverage", {"metrics"}),
        ("conformal/scores.py", "def f():\n    from sosbands.metrics import coverage", {"metrics"}),
        ("conformal/mixin.py", "from sosbands.metrics import coverage", {"metrics"}),
        ("conformal/mixin.py", "class A:\n    from sosbands.metrics import coverage", {"metrics"}),
        ("conformal/mixin.py", "def f():\n    from sosbands.stats import hsic", {"stats"}),
        ("saving/files.py", "from sosbands import __version__", {"__init__"}),
        ("tuning/search.py", "from sosbands.solvers import solve", {"solvers"}),
        ("plotting/bands.py", "from sosbands.bands import learn_bands", {"bands"}),
        ("__init__.py", "from sosbands.plotting import draw", {"plotting"}),
        ("problems/side.py", "from sosbands.solvers import a\nfrom sosbands.bands import b", {"solvers", "bands"}),
        ("kernels/features.py", "from sosbands.exceptions import A\nfrom . import kernels\nimport numpy", set()),
        ("kernels/features.py", "from .kernels import Kernel\nfrom .._types import Array", set()),
        ("conformal/mixin.py", "class A:\n    def f(self):\n        from sosbands.metrics import coverage", set()),
        ("saving/files.py", "from sosbands._extras import __version__", set()),
        ("regressors/sos_bands.py", "from ..bands import learn_bands\nfrom .. import tuning", set()),
        ("cli/demo.py", "from sosbands import learn_bands\nfrom ..report import page", set()),
    ],
)
def test_the_checker_finds_forbidden_imports_and_no_others(path, source, forbidden):
    assert violations(source, path) == forbidden


def test_the_table_has_no_cycle():
    left = {room: set(rooms) for room, rooms in ALLOWED.items()}
    while left:
        ground = {room for room, rooms in left.items() if not rooms & set(left)}
        assert ground, f"cycle among {sorted(left)}"
        left = {room: rooms for room, rooms in left.items() if room not in ground}


def absolute_imports(module):
    """Top-level packages that a module names in its imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    whole = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    parts = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in whole + parts}


def test_the_reference_shares_no_code_with_the_package_and_the_package_knows_no_studies():
    modules = sorted((STUDIES / "reference").glob("*.py"))
    assert len(modules) >= 3
    assert [module.name for module in modules if "sosbands" in absolute_imports(module)] == []
    assert "studies" in absolute_imports(STUDIES / "reproduce.py")  # what the check would see
    assert [module for module in MODULES if "studies" in absolute_imports(module)] == []


def test_no_room_without_a_subject():
    names = {part.removesuffix(".py").strip("_") for module in MODULES for part in module.relative_to(PACKAGE).parts}
    assert not names & FORBIDDEN_NAMES


# In a fresh process; scikit-learn imports pandas by itself where it is installed: what counts is what comes on top.
# Names are imported when they are first used, so that a plain import says nothing.
LIGHT = f"""
import sys, sklearn.utils.validation
before = set(sys.modules)
import sosbands
for planted in (False, True):
    if planted:
        sosbands._HOMES["app"] = "cli.app"
        sosbands.__all__.append("app")
    assert len([getattr(sosbands, name) for name in sosbands.__all__]) > 5
    print([name for name in {HEAVY} if name in set(sys.modules) - before])
"""


def printed(script):
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return [ast.literal_eval(line) for line in result.stdout.splitlines()]


def test_importing_the_package_and_using_its_names_is_light():
    light, planted = printed(LIGHT)
    assert light == []
    assert "typer" in planted


def test_the_public_face_is_small_and_exists():
    assert 1 <= len(sosbands.__all__) <= 15
    assert len(set(sosbands.__all__)) == len(sosbands.__all__)
    assert [name for name in sosbands.__all__ if not hasattr(sosbands, name)] == []


def test_rooms_are_found_by_attribute_after_a_plain_import():
    headings = re.findall(r"^sosbands\.(\w+)\n-+$", API.read_text(encoding="utf-8"), re.MULTILINE)
    assert {"bands", "metrics", "exceptions"} <= set(headings)
    rooms = sorted({*headings, *ROOMS} - {"cli"})
    assert printed(f"import sosbands\nprint([name for name in {rooms} if not hasattr(sosbands, name)])") == [[]]
    with pytest.raises(AttributeError, match="no attribute 'metric'"):
        sosbands.metric  # noqa: B018
