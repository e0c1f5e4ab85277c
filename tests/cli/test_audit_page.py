"""The commands on the page about audits run, and exit as the page says."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from equipoise import Predictions, write_predictions
from equipoise.cli import main
from equipoise.evaluate import cautions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit.md"
LINES = re.findall(r"^\$ (equipoise .*)$", PAGE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("page")
    generator = np.random.default_rng(0)
    logits = 2 * generator.normal(size=(1200, 3))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    groups = {"site": np.array(["north", "south"])[np.arange(1200) % 2]}

    def rows(scale, **extra):
        return Predictions(**{"logits": scale * logits, "labels": labels, "groups": groups} | extra)

    write_predictions(rows(2), place / "predictions.npz")
    write_predictions(rows(1), place / "new.npz")
    write_predictions(rows(3), place / "old.npz")
    write_predictions(rows(2, split="calib").take(slice(0, 800)), place / "calib.npz")
    write_predictions(rows(2, split="test").take(slice(800, 1200)), place / "test.npz")
    for number, part in enumerate(rows(2).blocks(500)):
        write_predictions(part, place / f"part-{number}.parquet")
    for day in ("2026-03-01", "2026-03-02"):
        (place / "rows" / f"day={day}").mkdir(parents=True)
        write_predictions(rows(2), place / "rows" / f"day={day}" / "part.parquet")
    authors = {**groups, "author": np.arange(1200) // 20}
    write_predictions(rows(2, groups=authors), place / "posts.parquet")
    np.savez(place / "scores.npz", scores=logits, truth=labels)
    top = rows(2)
    lines = [f"{y},{p},{c}" for y, p, c in zip(labels, top.predicted, top.confidence, strict=True)]
    chance = 1 / (1 + np.exp(3 - generator.normal(size=1200)))
    events = np.where(generator.random(1200) < chance, "fraud", "legit")
    both = [
        f"{1 - 5 * p / (1 + 4 * p)},{5 * p / (1 + 4 * p)},{y}" for p, y in zip(chance, events, strict=True)
    ]
    (place / "fraud.csv").write_text("p_legit,p_fraud,label\n" + "\n".join(both) + "\n")
    (place / "top1.csv").write_text("true_label,pred_label,confidence\n" + "\n".join(lines) + "\n")
    return place


def test_the_page_has_commands():
    assert len(LINES) >= 10


@pytest.mark.slow
def test_every_command_on_the_page(folder, monkeypatch, capsys):
    """In order, because some need what earlier ones wrote."""
    monkeypatch.chdir(folder)
    for line in LINES:
        words, _, remark = line.partition("#")
        expected = int(remark.split()[-1]) if remark else 0
        code = main([*shlex.split(words)[1:]])
        captured = capsys.readouterr()
        assert code == expected, f"{line}: {captured.out[-500:]} {captured.err}"


def test_every_warning_is_on_the_page():
    source = (
        Path(cautions.__file__).read_text() + (Path(cautions.__file__).parent / "auditing.py").read_text()
    )
    keys = set(re.findall(r'Caution\(\s*"(\w+)"', source))
    assert len(keys) > 8
    missing = [key for key in keys if f"`{key}`" not in PAGE.read_text()]
    assert not missing
