"""Each thing is computed once and read afterwards, from the runs to the table and the report."""

from collections import Counter

import pytest

from equipoise.calibrators import Calibrator
from equipoise.experiments import ComparisonSpec, folder, make_tables, report_of_runs, results, run_comparison
from equipoise.report import to_html
from helpers.tiny_runs import QUICK, TABLE


@pytest.fixture
def counted(monkeypatch):
    """Count fits of calibrators on ``calib`` (training fits some on ``tune``), and reads of prediction files."""
    counts = Counter()

    def watch(owner, name, key):
        real = getattr(owner, name)

        def call(*args, **settings):
            counts[key] += key != "fits" or args[1].split == "calib"
            return real(*args, **settings)

        monkeypatch.setattr(owner, name, call)

    watch(Calibrator, "fit", "fits")
    watch(folder, "read_predictions", "reads")
    watch(results, "compare", "tests")
    return counts


def test_ten_runs_and_two_calibrators_are_twenty_fits(counted, tmp_path):
    table = {
        **TABLE,
        "method": ["ce", "focal", "brier", "label_smoothing", "dual_focal"],
        "seed": [0, 1],
        "calibrators": ["temperature", "vector"],
        "recipe": {"name": "quick", "epochs": 1},
    }
    result = run_comparison(ComparisonSpec.from_table(table), tmp_path, options=QUICK, workers=1)
    assert len(result.summary.done) == 10
    assert counted["fits"] == 20
    assert counted["reads"] == 10 * 3 + 10, "each split once to score it, each test once to compare"
    tests = counted["tests"]
    for report in report_of_runs(result.summary.done, tables=result.tables).values():
        assert to_html(report)
    assert counted == {"fits": 20, "reads": 40, "tests": tests}
    assert make_tables(result.summary.done) == result.tables
    assert counted["fits"] == 20
    assert counted["reads"] == 50
