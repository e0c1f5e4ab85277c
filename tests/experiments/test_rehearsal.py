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
#: Small networks, with a choice and without one; the others take minutes.
QUICK = ("dual-focal-newsgroups", "newsgroups")
ROWS = [
    re.findall(r"`(equipoise [^`]+)`", line)
    for line in (HOME / "docs" / "papers.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("|")
]


def commands_of(path):
    """Return the commands of the page of the papers that draw the runs of a comparison."""
    rows = [row for row in ROWS if row and f"examples/specs/{path.name}" in row[0].split()]
    return list(dict.fromkeys(command for row in rows for command in row[1:] if "history=test" not in row[0]))


def is_printed(path):
    """Whether a paper printed a number that stands beside one of the rehearsed runs."""
    comparison = read_comparison(path, rehearse=True)
    columns = comparison.metrics or (*COLUMNS, "mean_iou")
    tuned = {one.method.name: tuple(one.space) for one in comparison.tuned}
    return any(
        printed_for(spec, "identity", columns, tuned=tuned.get(spec.method.name, ()))
        for spec in comparison.specs
    )


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path.stem in QUICK else pytest.mark.rehearsal, id=path.stem)
        for path in SPECS
    ],
)
def test_a_comparison_of_the_papers_is_rehearsed(path, tmp_path, capsys):
    words = ["--rehearse", "--resamples", "20", "--workers", "1", "--out", str(tmp_path / "runs"), "--quiet"]
    assert main(["compare", str(path), *words]) == 0, capsys.readouterr().err
    runs = tmp_path / "runs-rehearsal"
    table = (runs / f"{path.stem}-rehearsal.table.md").read_text(encoding="utf-8")
    assert ("printed: " in table) == is_printed(path)
    for number, command in enumerate(
        ["equipoise plot reliability runs", *commands_of(path), "equipoise report runs"]
    ):
        name, *rest = shlex.split(command)[1:]
        target = tmp_path / f"{number}.{'html' if name == 'report' else 'svg'}"
        given = [str(runs) if word == "runs" else word for word in rest]
        assert main([name, *given, "-o", str(target), "--quiet"]) == 0, (command, capsys.readouterr().err)
        assert list(tmp_path.glob(f"{number}*{target.suffix}")), command


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
