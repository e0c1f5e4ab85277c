"""Networks, data, losses and objectives of one's own in a spec: found, pinned by content, run everywhere."""

import os
import shutil
import sys

import pytest

from equipoise.core.errors import DataError, SpecError
from equipoise.experiments import (
    ComparisonSpec,
    Spec,
    format_tables,
    make_tables,
    prepare,
    report_of_runs,
    run,
    run_comparison,
)
from equipoise.experiments.build.preparation import code_files, pin
from equipoise.experiments.code.source import find_source, load_code
from helpers.own_code import CODE, own_table, write_code


@pytest.fixture
def home(tmp_path):
    before, known = list(sys.path), set(sys.modules)
    yield str(write_code(tmp_path / "home"))
    sys.path[:] = before
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def comparison(home, **changes):
    return ComparisonSpec.from_table(own_table(**changes), base_dir=home)


def one(home, **changes):
    table = {
        "data": "mine.py:points",
        "model": "mine.py:Net",
        "recipe": {"name": "quick", "epochs": 1},
        **changes,
    }
    return Spec.from_table(table, base_dir=home)


def prepared(home, **changes):
    return prepare([one(home, **changes)], where="mine.toml")


@pytest.mark.slow
def test_two_workers_give_what_one_gives(home, tmp_path, quick):
    alone = run_comparison(comparison(home), tmp_path / "one", **quick, workers=1)
    both = run_comparison(comparison(home), tmp_path / "two", **quick, workers=2)
    assert alone.summary.failed == both.summary.failed == {}
    assert alone.results.read_bytes() == both.results.read_bytes()
    assert [row.method for row in both.tables[0].rows][:3] == [
        "ce",
        "mine.py:Smoothed",
        "mine:squares(power=1.5)",
    ]
    assert both.tables[0].rows[1].fidelity == "yours"


def test_finished_runs_are_read_without_the_code(home, tmp_path, quick):
    done = run_comparison(comparison(home), tmp_path / "runs", **quick, workers=1)
    shutil.rmtree(home)
    assert format_tables(make_tables(done.summary.done, baseline="ce")) == format_tables(done.tables)
    assert list(report_of_runs(done.summary.done))
    assert {folder.status() for folder in done.summary.done} == {"finished"}


@pytest.mark.parametrize("file", ["mine.py", "sizes.py"])
def test_changed_code_is_another_run_and_so_is_what_it_imports(home, file):
    before = pin(one(home))
    with open(os.path.join(home, file), "a") as stream:
        stream.write("# changed\n")
    after = pin(one(home))
    assert before.identity != after.identity
    with pytest.raises(SpecError, match="changed code is another run"):
        load_code("mine.py:Net", home, digest=before.code["mine.py"])


def test_identity_does_not_depend_on_where_code_lies(home, tmp_path):
    deep = write_code(tmp_path / "elsewhere" / "deep")
    spec = one(str(deep.parent), data="deep/mine.py:points", model="deep/mine.py:Net")
    assert pin(spec).identity == pin(one(home)).identity


def test_data_made_by_code_are_known_by_content(home):
    first = pin(one(home))
    second = pin(one(home, data={"name": "mine.py:points", "options": {"n": 401}}))
    assert len(first.data.digest) == 64
    assert first.data.digest != second.data.digest


def test_a_changed_neighbor_is_run_anew(home):
    assert load_code("mine.py:WIDTH", home) == 8
    with open(os.path.join(home, "sizes.py"), "w") as stream:
        stream.write("WIDTH = 9 # nine\n")
    assert load_code("mine.py:WIDTH", home) == 9


def test_every_form_of_data_is_taken(home, tmp_path, quick):
    for name in ("points", "dataset", "images"):
        done = run(one(home, data=f"mine.py:{name}"), tmp_path, **quick)
        assert done.status() == "finished"
    with pytest.raises(DataError, match=r"mine\.toml.*map-style datasets by split, got int"):
        prepared(home, data="mine.py:no_data")


def test_an_objective_of_ones_own(home, tmp_path, quick):
    method = {"name": "mine.py:slow_objective", "options": {"factor": 2.0}}
    assert run(one(home, method=method), tmp_path, **quick).status() == "finished"
    with pytest.raises(SpecError, match="no option 'fctor'; did you mean 'factor'"):
        prepared(home, method={"name": "mine.py:slow_objective", "options": {"fctor": 2.0}})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": "mine.py:Nets"}, r"no 'Nets' in .*mine\.py; did you mean 'Net'"),
        ({"model": "nowhere.py:Net"}, r"mine\.toml.*no file .*nowhere\.py"),
        ({"model": "nowhere:Net"}, r"mine\.toml.*no module 'nowhere'"),
        (
            {"model": {"name": "mine.py:Net", "options": {"widht": 3}}},
            r"mine\.toml\.model: .*did you mean 'width'",
        ),
        (
            {"model": "mine.py:TwoColumns"},
            r"mine\.toml\.model: .*expected logits of shape \(4, 3\).*\(4, 2\)",
        ),
        ({"model": "mine.py:points"}, r"mine\.toml\.model: .*torch module, got tuple"),
        ({"method": "mine.py:no_gradient"}, r"mine\.toml\.method: .*one number with a gradient"),
        (
            {"method": {"name": "mine.py:Smoothed", "options": {"smothing": 1}}},
            r"mine\.toml\.method: .*did you mean 'smoothing'",
        ),
        ({"method": {"name": "focal", "options": {"gamma": -3}}}, r"mine\.toml\.method: .*gamma"),
        (
            {"method": {"name": "gamma_net", "auxiliary": "mlp"}},
            r"mine\.toml\.method: .*no auxiliary network",
        ),
        ({"data": {"name": "mine.py:points", "options": {"rows": 3}}}, "no option 'rows'"),
    ],
)
def test_mistakes_are_said_before_the_first_run(home, changes, sentence):
    with pytest.raises(SpecError, match=sentence):
        prepared(home, **changes)


@pytest.mark.parametrize("name", ["net.py:", ":Net", "net.py:3", "a:b:"])
def test_what_is_no_name_of_code_is_refused_when_the_spec_is_read(name):
    with pytest.raises(SpecError, match=r"spec\.model\.name: .*is not a name of code"):
        Spec.from_table({"data": "digits", "model": name})


def test_code_that_fails_is_told_in_a_sentence(home):
    with open(os.path.join(home, "bad.py"), "w") as stream:
        stream.write("raise RuntimeError('no card')\n")
    with pytest.raises(SpecError, match=r"bad\.py: fails when it is imported: RuntimeError: no card"):
        prepared(home, model="bad.py:Net")


def test_code_that_begins_runs_when_imported_does_not_run_for_ever(home):
    with open(os.path.join(home, "script.py"), "w") as stream:
        stream.write(
            CODE
            + "\nfrom equipoise.experiments import Spec, run\n"
            + "run(Spec.from_table({'data': 'digits', 'model': 'mlp'}), '/nowhere')\n"
        )
    with pytest.raises(SpecError, match=r"script\.py: begins runs when it is imported.*__main__"):
        prepared(home, model="script.py:Net")


def test_a_neighbor_that_another_module_stands_in_for_is_refused(home):
    with open(os.path.join(home, "json.py"), "w") as stream:
        stream.write("X = 1\n")
    with open(os.path.join(home, "uses.py"), "w") as stream:
        stream.write("import json\n")
    with pytest.raises(SpecError, match=r"Give json\.py a name of its own"):
        load_code("uses.py:json", home)


def test_files_are_named_without_running_them(home):
    names = [file.name for file in code_files([one(home)])]
    assert names == ["mine.py", "sizes.py"]
    assert find_source("torch.nn", home).files[0].name == "__init__.py"


def test_a_package_beside_the_spec(home):
    package = os.path.join(home, "ours")
    os.mkdir(package)
    for name, text in (("__init__", ""), ("widths", "W = 4\n"), ("nets", "from .widths import W\n")):
        with open(os.path.join(package, f"{name}.py"), "w") as stream:
            stream.write(text)
    assert load_code("ours.nets:W", home) == 4
    assert [file.name for file in find_source("ours.nets", home).files] == ["nets.py", "widths.py"]
    assert load_code("ours/widths.py:W", home) == 4
