"""The packages are in order: light imports, public names listed, documented and shown by an example."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise

PACKAGES = sorted(
    module.name for module in pkgutil.iter_modules(equipoise.__path__) if not module.name.startswith("_")
)
HEAVY = {
    "click",
    "PIL",
    "lightning",
    "lightning_fabric",
    "matplotlib",
    "mlflow",
    "numba",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "optuna",
    "pandas",
    "plotly",
    "pyarrow",
    "ray",
    "safetensors",
    "sklearn",
    "skorch",
    "tensorboard",
    "torchmetrics",
    "torchvision",
    "transformers",
    "typer",
    "wandb",
}


#: Each is imported in a fork of a process that holds only torch and SciPy, which are dear to import.
IMPORTS = """
import importlib, os, sys
import scipy, torch
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        importlib.import_module(name)
        print(name, *sorted({loaded.split(".")[0] for loaded in sys.modules}), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{name} cannot be imported")
"""
LIGHT = [
    "losses",
    "metrics",
    "calibrators",
    "core",
    "data",
    "decisions",
    "evaluate",
    "theory",
    "plots",
    "report",
]
LIGHT_NAMES = ["equipoise", *(f"equipoise.{package}" for package in LIGHT)]


@pytest.fixture(scope="module")
def loaded():
    """Which packages are there after importing a package."""
    words = [sys.executable, "-c", IMPORTS, *LIGHT_NAMES]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: set(packages) for name, *packages in map(str.split, lines)}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIGHT_NAMES)
def test_light_packages_stay_light(name, loaded):
    assert HEAVY.isdisjoint(loaded[name])


LAZY = [
    "equipoise",
    "equipoise.core",
    "equipoise.core.reading",
    "equipoise.experiments",
    "equipoise.plots",
]
IMPORT_ALL = f"""
import sys
import {", ".join(LAZY)}
print("torch" in sys.modules, "numpy" in sys.modules)
import equipoise
print(equipoise.losses.FocalLoss.__name__, equipoise.experiments.run.__name__)
"""


def test_the_top_level_import_is_light_and_reaches_every_package():
    result = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False", "FocalLoss", "run"]


@pytest.mark.parametrize("name", LAZY)
def test_lazy_packages_show_their_names_and_agree_with_what_type_checkers_see(name):
    package = importlib.import_module(name)
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'focall'"):
        package.focall  # noqa: B018
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert modules.isdisjoint(package.__all__), "importing such a module would hide the name"
    typed = next(node for node in ast.parse(inspect.getsource(package)).body if isinstance(node, ast.If))
    for node in ast.walk(typed):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                there = importlib.import_module(node.module)
                assert getattr(package, alias.name) is getattr(there, alias.name)


def test_completion_shows_the_packages():
    assert set(PACKAGES) <= set(dir(equipoise))


@pytest.mark.parametrize("package", PACKAGES)
def test_completion_shows_what_is_listed_and_what_lives_there(package):
    module = importlib.import_module(f"equipoise.{package}")
    listed = set(getattr(module, "__all__", ()))
    below = {part.name for part in pkgutil.iter_modules(getattr(module, "__path__", ()))}
    shown = {name for name in dir(module) if not name.startswith("_")}
    assert listed <= shown <= listed | below


#: Adapters share these; nobody else calls for them.
SHARED = {"auto", "auto_estimators", "bounded_network", "calibrated", "run_log"}
LOOK_AROUND = """
import sys
import equipoise
print(*(name for name in dir(equipoise.integrations) if not name.startswith("_")))
print(*sorted({name.split(".")[0] for name in sys.modules}))
print(equipoise.integrations.saved_model.load_model.__name__)
print(equipoise.catalogue.CATALOGUE["losses"]["ce"].key)
print(equipoise.core.reading.read_predictions.__name__)
"""


def test_adapters_are_shown_without_their_libraries_and_need_no_import_of_their_own():
    result = subprocess.run([sys.executable, "-c", LOOK_AROUND], capture_output=True, text=True, check=True)
    shown, loaded, *reached = result.stdout.splitlines()
    there = {module.name for module in pkgutil.iter_modules(equipoise.integrations.__path__)}
    assert set(shown.split()) == there - SHARED
    assert HEAVY.isdisjoint(loaded.split())
    assert "torch" not in loaded.split()
    assert reached == ["load_model", "ce", "read_predictions"]


def test_an_adapter_is_reached_like_a_package():
    pytest.importorskip("sklearn")
    assert equipoise.integrations.sklearn.CalibratedClassifier.__name__ == "CalibratedClassifier"
    with pytest.raises(AttributeError, match="has no attribute 'sklaern'"):
        equipoise.integrations.sklaern  # noqa: B018


def public_names():
    for package in (None, *PACKAGES):
        module = equipoise if package is None else importlib.import_module(f"equipoise.{package}")
        for name in getattr(module, "__all__", ()):
            yield f"{module.__name__}.{name}", getattr(module, name)


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_listed(package):
    module = importlib.import_module(f"equipoise.{package}")
    names = list(getattr(module, "__all__", ()))
    assert len(names) == len(set(names))
    visible = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("equipoise.")
    }
    assert visible <= set(names), f"{module.__name__} shows names that it does not list"


@pytest.mark.parametrize(("where", "value"), [pytest.param(w, v, id=w) for w, v in public_names()])
def test_public_names_are_documented_with_an_example(where, value):
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return
    assert inspect.getdoc(value), where
    examples = doctest.DocTestFinder(exclude_empty=True).find(value, name=where)
    is_record = inspect.isclass(value) and (
        issubclass(value, tuple) or hasattr(value, "__dataclass_fields__")
    )
    assert is_record or any(part.examples for part in examples), f"{where} has no example"


def test_every_module_says_what_lives_in_it():
    for module in pkgutil.walk_packages(equipoise.__path__, "equipoise."):
        path = importlib.util.find_spec(module.name).origin
        with open(path, encoding="utf-8") as source:
            assert ast.get_docstring(ast.parse(source.read())), module.name


#: One for each host, which calls it in its own way.
ONE_PER_HOST = {"AdaptLoss"}


def test_no_two_classes_share_a_name():
    places = {}
    for module in pkgutil.walk_packages(equipoise.__path__, "equipoise."):
        path = importlib.util.find_spec(module.name).origin
        with open(path, encoding="utf-8") as source:
            for node in ast.parse(source.read()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(module.name)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert set(twice) == ONE_PER_HOST, twice


def test_functions_named_by_the_architecture_exist():
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py): ([\w.]+)`", page)
    assert len(named) > 40
    for file, name in named:
        tree = ast.parse((Path(equipoise.__path__[0]) / file).read_text(encoding="utf-8"))
        for part in name.split("."):
            tree = next((node for node in tree.body if getattr(node, "name", None) == part), None)
            assert tree is not None, f"{file}: {name}"
