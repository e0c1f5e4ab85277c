"""The reference: every public name once, roles as links that lead somewhere, examples as code."""

import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import equipoise

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def reference():
    sys.path.insert(0, str(ROOT / "tools" / "docs"))
    try:
        return importlib.import_module("reference")
    finally:
        sys.path.remove(str(ROOT / "tools" / "docs"))


@pytest.fixture(scope="module")
def pages(reference):
    return dict(reference.pages())


def test_every_public_name_is_there_once(reference, pages):
    packages = [
        module.name for module in pkgutil.iter_modules(equipoise.__path__) if module.name != "__main__"
    ]
    assert set(packages) < set(reference.PAGES)
    for package in ("", *packages):
        module = importlib.import_module(f"equipoise.{package}".rstrip("."))
        for name in getattr(module, "__all__", ()):
            assert name == "__version__" or f"{module.__name__}.{name}" in reference.addresses(), name
    anchors = re.findall(r"\{ #(\S+) \}", "".join(pages.values()))
    assert len(anchors) == len(set(anchors)) > 500


def test_adapters_are_there_whether_their_libraries_are_or_not(pages):
    modules = {path.stem for path in (ROOT / "src/equipoise/integrations").glob("*.py")} - {"__init__"}
    listed = set(re.findall(r"#equipoise\.integrations\.(\w+)\.\w+ \}", pages["api/integrations.md"]))
    assert listed == modules


def test_links_lead_to_anchors(pages):
    anchors = {
        name.removeprefix("api/"): {*re.findall(r"\{ #(\S+) \}", text), ""} for name, text in pages.items()
    }
    for name, text in pages.items():
        plain = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for page, anchor in re.findall(r"\]\(([\w.]*\.md)?#([\w.]+)\)", plain):
            assert anchor in anchors[page or name.removeprefix("api/")], (name, anchor)


def test_nothing_of_docstrings_is_left_as_it_was(pages):
    for name, text in pages.items():
        plain = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        assert not re.search(
            r":\w+:`|``|\.\. \w+::|^(Example|Args|Returns|Raises):|\brequired\b", plain, re.M
        ), name


def test_a_signature_is_as_in_the_source_and_roles_are_links(pages):
    text = pages["api/losses.md"]
    assert "    gamma: float | Tensor = 3.0,\n" in text
    assert "formula in [`focal_loss`](losses.md#equipoise.losses.focal_loss)" in text
    assert (
        "```pycon\n>>> FocalLoss(gamma=1.0)(torch.zeros(1, 2), torch.tensor([0]))\ntensor(0.3466)\n```"
        in text
    )
    assert "class DataError(EquipoiseError, ValueError)" in pages["api/core.md"]
