"""The leaderboard: every method of every complete benchmark, how to submit one, and commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages.figures import margins
from pages.results import letter, table
from pages.second.data import base, board, done, plain_name, rivals, share, titles
from pages.second.words import COST, READ, conclusion, cost, decay_note, effect, number, state

SETTINGS = {"tuned": "tuned", "decay": "tuned, same weight decay", "papers": "of the paper"}
#: Margin of equivalence, in percent of the NLL of cross-entropy.
MARGIN = 1.0


def page() -> str:
    """Write the leaderboard."""
    found = [row for benchmark in done() for row in board(benchmark)]
    waiting = ", ".join(
        f"{letter(benchmark)} ({state(benchmark)})" for benchmark in titles() if benchmark not in done()
    )
    parts = [
        "# Leaderboard",
        "",
        "One row per method and benchmark of the [second edition](second.md). Methods are compared with cross-entropy, "
        "both after temperature scaling, by the same seeds on the same rows. NLLs of one benchmark are comparable "
        "where the number of rows is the same; differences always are. Click a heading to sort.",
        "",
        *([decay_note(), ""] if decay_note() else []),
    ]
    if found:
        parts += [
            '<div class="sortable" markdown="1">',
            "",
            *table(
                (
                    "benchmark",
                    "method",
                    "NLL",
                    "difference % [95% interval]",
                    "conclusion",
                    "ECE %",
                    "AURC %",
                    "certified coverage %",
                    "set size",
                    "cost",
                    "seeds",
                    "rows",
                    "settings",
                    "by",
                ),
                map(_board_line, found),
            ),
            "</div>",
            "",
            f"{READ} Endpoints other than the NLL are means over seeds; the page of each benchmark has their errors. "
            f"{COST} *Settings*: *tuned* methods chose one of four on `tune`; `@decay` and *tuned, same weight decay* "
            "mark the supplement.",
            "",
            *figure_with_caption(),
        ]
    if waiting:
        parts += [f"Left out until all seeds are there: {waiting}.", ""]
    return "\n".join([*parts, *_how_to_submit(), *_commands()])


def _board_line(row: Mapping[str, Any]) -> list[str]:
    by = f"[{row['submitted_by']}]({row['link']})" if row["link"] else row["submitted_by"]
    return [
        letter(row["benchmark"]),
        f"`{row['method']}`",
        f"{row['nll']:.4f}",
        effect(row),
        conclusion(row),
        *(number(row, metric, error=False) for metric in ("ece", "aurc", "coverage_at_5", "set_size_90")),
        cost(row),
        str(row["n_seeds"]),
        f"{row['n_rows']:,}",
        SETTINGS.get(row["family"], "own"),
        by,
    ]


def figure() -> str:
    """Draw the differences of tuned and submitted methods in every benchmark."""
    panels = {}
    for benchmark in done():
        same = {plain_name(row): _ends(row) for row in rivals(benchmark, "decay")}
        shown = [row for family in ("tuned", "submitted", "auto") for row in rivals(benchmark, family)]
        panels[f"{letter(benchmark)}, {base(benchmark)['n_seeds']} seeds"] = [
            (row["method"], _ends(row), same.get(row["method"])) for row in sorted(shown, key=share)
        ]
    return margins(panels, margin=MARGIN)


def _ends(row: Mapping[str, Any]) -> tuple[float, ...]:
    return tuple(share(row, key) for key in ("difference", "low", "high"))


def figure_with_caption() -> list[str]:
    """Write the figure below a table."""
    open_circles = (
        " Open circles: the same methods with the weight decay of cross-entropy."
        if any(rivals(benchmark, "decay") for benchmark in done())
        else ""
    )
    return [
        "![Differences from cross-entropy with intervals; the band is the margin](figures/leaderboard.svg)",
        "",
        "Tuned and submitted methods, in percent of the NLL of cross-entropy. Filled circles: as designed."
        f"{open_circles} Lines are simultaneous 95% intervals, and the shaded band is the margin of equivalence.",
        "",
    ]


def _how_to_submit() -> list[str]:
    return [
        "## How to submit",
        "",
        "You hand in predictions, and the numbers are computed here. From a clone of the repository:",
        "",
        "1. Write the rows of a benchmark to a file. It holds `x_train`, `y_train` and `id_train`, and the same for "
        "`tune`, `calib` and `test`. E2 needs no data; for the others, [Data](../data.md) describes where files go.",
        "",
        "    ```console",
        "    $ python evidence/leaderboard.py splits e2 -o e2.npz",
        "    ```",
        "",
        "2. Train with every seed of the benchmark, on `train` only, with at most four settings per seed; choose the "
        "setting on `tune`. Do not calibrate: temperature scaling is fitted on your `calib` predictions.",
        "3. Write predictions as `predictions/<seed>/tune.npz`, `calib.npz` and `test.npz` (or `.csv`, `.parquet`), "
        "with `probs` or `logits`, `labels` and `id`. Seeds are numbered from 0.",
        "4. Check and score them. Wrong rows, labels, seeds or distributions are reported in one line; the exit code "
        "is then 2.",
        "",
        "    ```console",
        '    $ python evidence/leaderboard.py add e2 my_method predictions/ --name "A. Author" \\',
        '        --link https://example.org/my-method --command "python train.py --seed 0" --cost 1.2',
        "    ```",
        "",
        "5. Run `python tools/docs/generate.py` and open a pull request with the files in `evidence/leaderboard/`. "
        "Keep the predictions, because we may ask for them.",
        "",
        "Submissions to E2 are judged on its 10,000 test rows. Submissions are corrected together for their number, "
        "and are exploratory.",
        "",
    ]


def _commands() -> list[str]:
    parts = [
        "## Commands",
        "",
        "Each command repeats the trainings of one row. Then `python evidence/collect.py e2 --runs "
        "~/evidence-runs/runs` (with the name of the benchmark) and `python evidence/leaderboard.py` write the files.",
        "",
    ]
    for benchmark in done():
        lines = [(f"`{row['method']}`", f"`{row['command']}`") for row in board(benchmark)]
        parts += [f"### {letter(benchmark)}", "", *table(("method", "command"), lines)]
    return parts
