"""One reading of names: what is announced, pinned, built and part of the identity is the same file."""

import sys

import pytest

from equipoise.catalogue import SumTerm
from equipoise.core.errors import SpecError
from equipoise.experiments import Spec, run
from equipoise.experiments.build.preparation import code_files, code_in_spec, pin
from equipoise.experiments.code.component import split_sum
from equipoise.experiments.specs.identity import identity_of
from helpers.tiny_runs import QUICK, TABLE

NET = """
import torch
class Net(torch.nn.Sequential):
    def __init__(self, n_classes, n_inputs):
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(n_inputs, WIDTH), torch.nn.Linear(WIDTH, n_classes))
"""
LOSS = """
import torch
def loss(logits, labels):
    return FACTOR * torch.nn.functional.cross_entropy(logits, labels)
"""
#: Folders whose names look like sums.
FOLDERS = ["c++", "a+b", "+", "2*a", "ce+", "x+0.5*y", "1+1"]


@pytest.fixture
def home(tmp_path):
    before, known = list(sys.path), set(sys.modules)
    yield tmp_path / "home"
    sys.path[:] = before
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_plus_in_the_path_of_a_network_changes_nothing(home, folder):
    good, decoy = home / folder / "net.py", home / folder.rpartition("+")[2].rpartition("*")[2] / "net.py"
    write(decoy, "raise SystemExit('not named')")
    write(good, NET.replace("WIDTH", "4"))
    spec = Spec.from_table({**TABLE, "model": f"{folder}/net.py:Net"}, base_dir=str(home))
    assert code_files([spec]) == [good.resolve()]
    assert list(pin(spec).code) == [f"{folder}/net.py"]


def test_edited_code_is_another_run(home, tmp_path):
    file = home / "c++" / "net.py"
    spec = Spec.from_table({**TABLE, "model": "c++/net.py:Net"}, base_dir=str(home))
    names = []
    for width in ("4", "6"):
        write(file, NET.replace("WIDTH", width))
        names.append(run(spec, tmp_path / "runs", **QUICK).name)
    assert len(set(names)) == 2


def test_a_network_in_such_a_folder_has_the_identity_of_its_content(home):
    write(home / "c++" / "net.py", NET.replace("WIDTH", "4"))
    write(home / "net.py", NET.replace("WIDTH", "4"))
    found = {
        pin(Spec.from_table({**TABLE, "model": name}, base_dir=str(home))).identity
        for name in ("c++/net.py:Net", "net.py:Net")
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("focal", [(None, "focal")]),
        ("ce+mmce", [(None, "ce+mmce")]),
        ("focal+0.5*mdca", [(None, "focal"), ("0.5", "mdca")]),
        (" ce + 2 * mdca ", [(None, "ce"), ("2", "mdca")]),
        ("1e+1*ce+1e-3*mdca", [("1e+1", "ce"), ("1e-3", "mdca")]),
        ("ce+0.5*a.py:loss", [(None, "ce"), ("0.5", "a.py:loss")]),
        ("a.py:loss+b.py:loss", [(None, "a.py:loss"), (None, "b.py:loss")]),
        ("c++/a.py:loss", [(None, "c++/a.py:loss")]),
        ("0.5*c++/a.py:loss+ce", [("0.5", "c++/a.py:loss"), (None, "ce")]),
        ("ce+0.5*c++/a.py:loss", [(None, "ce"), ("0.5", "c++/a.py:loss")]),
        ("2*a/a.py:loss", [("2", "a/a.py:loss")]),
        ("./2*a/a.py:loss", [(None, "./2*a/a.py:loss")]),
        ("package.module:Outer.loss", [(None, "package.module:Outer.loss")]),
        ("focall+0.5*mdca", [(None, "focall"), ("0.5", "mdca")]),
        ("focal+", [(None, "focal"), (None, "")]),
    ],
)
def test_sums_are_split_where_a_term_is_whole(name, terms):
    assert split_sum(name) == tuple(SumTerm(*term) for term in terms)


@pytest.mark.parametrize("name", ["c++/a.py:loss", "ce+0.5*c++/a.py:loss", "0.5*c++/a.py:loss+mdca"])
@pytest.mark.parametrize("key", ["method", "loss"])
def test_losses_are_announced_pinned_and_built_from_one_file(home, name, key, tmp_path):
    write(home / "c++" / "a.py", LOSS.replace("FACTOR", "1.0"))
    method = name if key == "method" else {"name": "supervised", "loss": name}
    spec = Spec.from_table({**TABLE, "method": method}, base_dir=str(home))
    assert [one.name for found in code_in_spec(spec).values() for one in found] == ["c++/a.py:loss"]
    first = pin(spec)
    assert run(first, tmp_path / "runs", **QUICK).status() == "finished"
    write(home / "c++" / "a.py", LOSS.replace("FACTOR", "2.0"))
    assert pin(spec).identity != first.identity
    with pytest.raises(SpecError, match="is not what it was when this run was begun"):
        run(first, tmp_path / "other", **QUICK)


def test_a_digest_that_ends_like_a_module_is_left_alone():
    code = {"a": "00", "net.py": "1a"}
    spec = {"model": {"name": "net.py:Net"}, "method": {"name": "a:loss"}}
    moved = {"model": {"name": "net.py:Net"}, "method": {"name": "b:loss"}}
    assert identity_of({**spec, "code": code}) == identity_of({**moved, "code": {"b": "00", "net.py": "1a"}})
