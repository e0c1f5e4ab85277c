"""Methods of other packages: by registering, and by entry points that every process sees."""

import subprocess
import sys

import pytest

from equipoise.catalogue import CATALOGUE, Entry, register
from equipoise.cli import main
from equipoise.core.errors import SpecError
from equipoise.experiments import Spec, run
from equipoise.losses import FocalLoss
from helpers.tiny_runs import TABLE

MINE = Entry(
    key="mine",
    title="Mine",
    made_by=FocalLoss,
    fidelity="yours",
    summary="A test.",
    options={"gamma": 1.0},
)


@pytest.fixture
def registered():
    register("losses", MINE)
    yield
    del CATALOGUE["losses"]["mine"]


def test_a_registered_loss_is_found_by_name(registered, tmp_path, quick):
    done = run(Spec.from_table({**TABLE, "method": "mine+0.1*mdca"}), tmp_path, **quick)
    assert done.status() == "finished"
    with pytest.raises(SpecError, match="'mine' is taken in losses"):
        register("losses", MINE)


@pytest.mark.parametrize(
    ("category", "entry", "sentence"),
    [
        ("losess", MINE, "did you mean 'losses'"),
        ("losses", 3, "expected an Entry, got int"),
        ("losses", Entry(key="a:b", title="", made_by=dict, fidelity="yours", summary=""), "is not a name"),
        ("losses", CATALOGUE["losses"]["focal"], "'focal' is taken"),
    ],
)
def test_mistakes(category, entry, sentence):
    with pytest.raises(SpecError, match=sentence):
        register(category, entry)


class Point:
    """An entry point, as an installed package has it."""

    dist = None

    def __init__(self, name, load):
        self.name, self.load = name, load


def raise_error(error):
    raise error


@pytest.fixture
def plugins(monkeypatch):
    """Install entry points for one test."""
    from equipoise.catalogue import plugins as module

    monkeypatch.setattr(module, "_tried", [])
    monkeypatch.setattr(module, "_failures", {})
    yield lambda *points: monkeypatch.setattr(module, "_points", lambda: points)
    CATALOGUE["losses"].pop("mine", None)


@pytest.mark.parametrize(
    "error",
    [ImportError("libgone.so: cannot open"), SystemExit("gone"), KeyError("gone"), GeneratorExit("gone")],
    ids=lambda error: type(error).__name__,
)
def test_a_plugin_that_fails_is_named_and_the_others_go_on(plugins, error, capsys):
    plugins(Point("losses.theirs", lambda: raise_error(error)), Point("losses.mine", lambda: MINE))
    assert main(["list", "losses"]) == 0
    captured = capsys.readouterr()
    [line] = captured.err.splitlines()
    assert f"'losses.theirs' cannot be used: {type(error).__name__}: " in line
    assert "Mine" in captured.out
    assert Spec.from_table({**TABLE, "method": "mine"}).method.name == "mine"
    for method in ("theirs", "ce+0.1*theirs"):
        with pytest.raises(SpecError, match=f"'losses.theirs' cannot be used: {type(error).__name__}"):
            Spec.from_table({**TABLE, "method": method})


@pytest.mark.parametrize("category", ["models", "recipes", "objectives"])
@pytest.mark.filterwarnings("ignore::equipoise.core.errors.EquipoiseWarning")
def test_a_name_of_a_plugin_that_failed_is_explained_in_every_category(plugins, category):
    plugins(Point(f"{category}.theirs", lambda: raise_error(ImportError("gone"))))
    key = {"models": "model", "recipes": "recipe", "objectives": "method"}[category]
    with pytest.raises(SpecError, match=f"'{category}.theirs' cannot be used: ImportError: gone"):
        Spec.from_table({**TABLE, key: "theirs"})


def test_ctrl_c_in_a_plugin_stops_the_command(plugins):
    plugins(Point("losses.theirs", lambda: raise_error(KeyboardInterrupt())))
    assert main(["list"]) == 130


@pytest.mark.slow
def test_an_installed_package_adds_methods_to_the_command(tmp_path):
    (tmp_path / "theirs.py").write_text(
        "from equipoise.catalogue import Entry\n"
        "from equipoise.experiments import Spec\n"
        "from equipoise.losses import FocalLoss\n"
        "LOSS = Entry(key='theirs', title='Theirs', made_by=FocalLoss, fidelity='yours', summary='A loss.')\n"
    )
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[equipoise]\nlosses.theirs = theirs:LOSS\n")
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    code = f"{path}; from equipoise.cli import main; sys.exit(main(sys.argv[1:]))"
    shown = subprocess.run(
        [sys.executable, "-c", code, "show", "theirs"], capture_output=True, text=True, check=False
    )
    assert "Theirs  (losses: theirs)" in shown.stdout, shown.stderr
    table = "dict(data='digits', model='mlp', method='theirs')"
    first = f"{path}; import theirs; print(theirs.Spec.from_table({table}).label)"
    used = subprocess.run([sys.executable, "-c", first], capture_output=True, text=True, check=False)
    assert used.stdout.startswith("theirs"), used.stderr
    (info / "entry_points.txt").write_text("[equipoise]\nlosses.theirs = theirs:NOTHING\n")
    broken = subprocess.run([sys.executable, "-c", code, "list"], capture_output=True, text=True, check=False)
    assert broken.returncode == 0
    assert "the entry point 'losses.theirs' of the package 'theirs' cannot be used" in broken.stderr
