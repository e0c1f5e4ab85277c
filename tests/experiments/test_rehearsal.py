"""Every comparison of the papers runs end to end on made-up data: table, printed numbers, figures, report."""

import re
import shlex
from pathlib import Path

import pytest

from equipoise.cli import main
from equipoise.experiments import read_comparison
from equipoise.experiments.results.papers import printed_for
from equipoise.experiments.results.tables import COLUMNS
from equipoise.experiments.tuning.samplers import first_settings

HOME = Path(__file__).resolve().parents[2]
PREFIXES = ("cals", "diff-dml", "dual-focal", "gamma-net", "losses", "newsgroups.", "voc", "weight-decay")
SPECS = sorted(
    path for path in (HOME / "examples" / "specs").glob("*.toml") if path.name.startswith(PREFIXES)
)
#: Small networks, with a choice and without one.
DAILY = ("dual-focal-newsgroups", "newsgroups")
#: Large networks or many runs, ten seconds to two minutes each.
LONG = (
    *(
        "cals",
        "cals-imagenet",
        "cals-swin",
        "diff-dml",
        "diff-dml-auxiliaries",
        "diff-dml-tiny",
        "dual-focal",
    ),
    *("dual-focal-ada", "dual-focal-fixed", "dual-focal-ood", "dual-focal-ood-fixed", "dual-focal-rivals"),
    *(
        "dual-focal-seeds",
        "dual-focal-seeds-fixed",
        "dual-focal-tiny",
        "dual-focal-tiny-fixed",
        "gamma-net-tiny",
    ),
)
ROWS = [
    re.findall(r"`(equipoise [^`]+)`", line)
    for line in (HOME / "docs" / "papers.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("|")
]


def find_cases():
    """Return the commands that draw the runs of each comparison, by its name and settings, as on the papers' page."""
    cases = {(path, ()): ["equipoise plot reliability runs"] for path in SPECS}
    for compare, *others in filter(None, ROWS):
        _, command, *words = shlex.split(compare)
        if command == "compare":
            settings = tuple(words[2::2])
            cases.setdefault((HOME / words[0], settings), []).extend(others)
    return cases


def marked(path, settings, commands):
    """Return a case with its markers: two run daily, most with the slow tests, all as rehearsals."""
    name = " ".join([path.stem, *settings])
    marks = [] if name in DAILY else [pytest.mark.rehearsal]
    marks += [pytest.mark.slow] if name not in (*DAILY, *LONG) else []
    return pytest.param(path, settings, list(dict.fromkeys(commands)), marks=marks, id=name)


def is_printed(path, settings):
    """Whether a paper printed a number that stands beside one of the rehearsed runs."""
    comparison = read_comparison(path, overrides=settings, rehearse=True)
    columns = comparison.metrics or (*COLUMNS, "mean_iou")
    tuned = {one.method.name: tuple(one.space) for one in comparison.tuned}
    return any(
        printed_for(spec, "identity", columns, tuned=tuned.get(spec.method.name, ()))
        for spec in comparison.specs
    )


CASES = [marked(*case, commands) for case, commands in find_cases().items()]


@pytest.mark.parametrize(("path", "settings", "commands"), CASES)
def test_a_comparison_of_the_papers_is_rehearsed(path, settings, commands, tmp_path, capsys):
    words = ["--rehearse", "--resamples", "20", "--workers", "1", "--threads", "1", "--quiet"]
    words += ["--out", str(tmp_path / "runs"), *(word for one in settings for word in ("--set", one))]
    assert main(["compare", str(path), *words]) == 0, capsys.readouterr().err
    runs = tmp_path / "runs-rehearsal"
    table = (runs / f"{path.stem}-rehearsal.table.md").read_text(encoding="utf-8")
    assert ("printed: " in table) == is_printed(path, settings)
    for number, command in enumerate([*commands, "equipoise report runs"]):
        name, *rest = shlex.split(command)[1:]
        target = tmp_path / f"{number}.{'html' if name == 'report' else 'svg'}"
        given = [str(runs) if word == "runs" else word for word in rest]
        assert main([name, *given, "-o", str(target), "--quiet"]) == 0, (command, capsys.readouterr().err)
        assert list(tmp_path.glob(f"{number}*{target.suffix}")), command


def test_cases_with_a_marker_of_their_own_exist():
    assert {*DAILY, *LONG} <= {case.id for case in CASES}


def test_the_page_of_the_papers_has_commands_that_exist(tmp_path):
    plots = {
        shlex.split(command)[2] for row in ROWS for command in row if command.startswith("equipoise plot")
    }
    assert {"rivals", "hyperparameter", "reliability", "history", "phi", "penalties"} <= plots
    for kind in ("phi", "penalties"):
        assert main(["plot", kind, "-o", str(tmp_path / f"{kind}.svg"), "--quiet"]) == 0


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_rehearsal_covers_every_method_network_and_dataset(path):
    whole, cut = read_comparison(path), read_comparison(path, rehearse=True)
    assert cut.methods == whole.methods
    assert cut.baseline == whole.baseline
    pairs = {(spec.data.name, spec.model.name) for spec in whole.specs}
    assert {(spec.data.name, spec.model.name) for spec in cut.specs} == pairs
    first = cut.specs[0]
    tried = {spec.method.label for spec in cut.specs if (spec.data, spec.model) == (first.data, first.model)}
    assert set(cut.methods) - {one.label for one in cut.tuned} <= tried
    for one in cut.tuned:
        settings = first_settings(one)
        assert len(settings) == 2
        assert {one.method_at(setting).label for setting in settings} <= tried
    for spec in cut.specs:
        assert spec.data.options["stand_in"]
        assert (spec.training.epochs, spec.training.batch_size) == (1, 2)
        kept = ("schedule", "milestones", "optimizer", "reduction", "keep", "select", "meta")
        usual = next(one for one in whole.specs if one.method.name == spec.method.name)
        assert all(getattr(spec.training, key) == getattr(usual.training, key) for key in kept)
