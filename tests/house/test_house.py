"""The house is in order: light imports, public names listed, documented and shown by an example."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import equipoise

ROOMS = sorted(module.name for module in pkgutil.iter_modules(equipoise.__path__) if module.ispkg)
HEAVY = {
    "click",
    "jinja2",
    "lightning",
    "lightning_fabric",
    "matplotlib",
    "mlflow",
    "numba",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "pandas",
    "plotly",
    "pyarrow",
    "ray",
    "rich",
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


def test_import_takes_nothing_heavy_along():
    code = "import sys, equipoise; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert HEAVY.isdisjoint(loaded.split())


@pytest.mark.parametrize(
    "room", ["losses", "metrics", "calibrators", "core", "evaluate", "theory", "plots", "report"]
)
def test_light_rooms_stay_light(room):
    code = f"import sys, equipoise.{room}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert HEAVY.isdisjoint(loaded.split())


def public_names():
    for room in (None, *ROOMS):
        module = equipoise if room is None else importlib.import_module(f"equipoise.{room}")
        for name in getattr(module, "__all__", ()):
            yield f"{module.__name__}.{name}", getattr(module, name)


@pytest.mark.parametrize("room", ROOMS)
def test_public_names_are_listed(room):
    module = importlib.import_module(f"equipoise.{room}")
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
