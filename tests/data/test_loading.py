import inspect
import sys

import pytest

import equipoise.data as package
from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import MissingExtraError, SpecError
from equipoise.data import READERS, load

DATASETS = CATALOGUE["datasets"]


def test_unknown_names_and_options_give_the_nearest():
    with pytest.raises(SpecError, match="did you mean 'cifar10'"):
        load("cifr10")
    with pytest.raises(SpecError, match="did you mean 'separation'"):
        load("mixture", options={"seperation": 2})
    with pytest.raises(SpecError, match="no option 'seed'; it is an argument of its own, seed="):
        load("mixture", options={"seed": 2})
    with pytest.raises(SpecError, match=r"no option 'z'; it has (?!.*\b(root|seed|download)\b)"):
        load("mixture", options={"z": 2})
    with pytest.raises(SpecError, match="needs the option 'path'"):
        load("npz")


def test_every_reader_is_in_the_catalogue_and_has_a_seed():
    assert sorted(READERS) == sorted(DATASETS)
    for key, entry in DATASETS.items():
        assert entry.key == key
        assert entry.factory is READERS[key]
        assert entry.summary
        assert entry.use_when
        assert entry.avoid_when
        assert "seed" in inspect.signature(entry.factory).parameters, key
        unknown = set(entry.options) - set(inspect.signature(entry.factory).parameters)
        assert not unknown, key


def test_public_names_are_sorted_and_there():
    assert sorted(package.__all__) == sorted(set(package.__all__))
    assert all(hasattr(package, name) for name in package.__all__)


def test_digits_are_real_and_whole():
    data = load("digits")
    assert len(data) == 1797
    assert data.class_counts("test").sum() == 359
    assert data.fingerprints["test"] == load("digits").fingerprints["test"]
    pixels = data.inputs.float() / 255
    assert pixels.mean().item() == pytest.approx(data.mean.item(), abs=1e-3)
    assert pixels.std().item() == pytest.approx(data.std.item(), abs=1e-3)


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name == "sklearn":
                raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")

    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(MissingExtraError, match=r"equipoise\[data\]"):
        load("digits")
