"""Awkward but valid inputs: odd text, names, paths and sizes come back equal, or are refused when written."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from equipoise import Predictions, iter_predictions, read_predictions, score, write_predictions
from equipoise.core.errors import EquipoiseError
from equipoise.core.reading.formats import WRITERS
from stress.children import check_finished, command, forked, warm_up
from stress.judge import Wrong

TEXTS = (
    "", " ", "a,b", 'say "no"', "it's", "two\nlines", "carriage\rreturn", "tab\there", "a\0b", "\0", "b\0", "x" * 257,
    "y" * 5000, "é" * 300, "日本語", "🦊🦊", "a\u0301", "\u202eright to left", "\ufeffmark", "=1+1", "+cmd", "-2", "@x",
    "[red]x[/red]", "<b>&amp;", "\\n", "\x1b[31mred", "\x07", "NaN", "nan", "None", "1", "01", "1.0", "true", "a;b",
    "|", "$x_1$", "%", "{}", "#", "`x`", "*", " lead", "trail ", "\x85", "\u2028", "\x7f", "\u200b", "null", "inf",
)  # fmt: skip
#: Parts of names of files and folders.
PATHS = (
    "a=b", "lr=0.1", "a+b", "a b", "[1]", "[a-z]", "{x}", "日本", "é", "a,b", "a'b", 'a"b', "-x", "x\ty", "x\ny", "~a",
    "%41", "a;b", "*", "?", "$HOME", "a:b", "#1", "\x1b[31m", "x" * 120, "!x", "(1)", "@", "=1+1",
    "a|b", "a_b", "<b>",
)  # fmt: skip


def prepare_awkward(folder: Path) -> None:
    rows = Predictions(probs=[[0.6, 0.4], [0.3, 0.7]], labels=[0, 1])
    for ending in WRITERS:
        write_predictions(rows, folder / f"a{ending}")
        score(read_predictions(folder / f"a{ending}"), n_resamples=1)
    path, brief = folder / "a.npz", ("--resamples", "5")
    warm_up(
        ["audit", path, *brief],
        ["score", path, "--json", *brief],
        ["report", path, "-o", folder / "r.html", *brief],
        ["compare-files", path, path, *brief],
    )


def try_round_trip(_: None, chance: np.random.Generator, folder: Path) -> None:
    """Predictions with awkward names, groups and sizes come back from a file as they were, or are refused."""
    if chance.random() < 0.01:
        _try_wide_table(chance, folder)
        return
    rows = _rows(chance)
    ending = str(chance.choice(list(WRITERS)))
    path = folder / f"a{ending}"
    try:
        write_predictions(rows, path)
    except EquipoiseError:
        if path.exists():
            raise Wrong(f"{ending}: refused, and a file is left") from None
        return
    try:
        if chance.random() < 0.5:
            found = [read_predictions(path)]
        else:
            found = list(iter_predictions(path, chunk_rows=int(chance.integers(1, 40))))
    except EquipoiseError as error:
        raise Wrong(f"{ending}: written, and refused when read: {error}") from None
    _check_same(found, rows, ending)


def _text(chance: np.random.Generator) -> str:
    first = TEXTS[chance.integers(len(TEXTS))]
    return first if chance.random() < 0.7 else first + TEXTS[chance.integers(len(TEXTS))]


def _rows(chance: np.random.Generator) -> Predictions:
    n = int(chance.choice([1, 1, 2, 5, 30]))
    k = int(chance.choice([2, 2, 3, 4, 10, 100, 1000]))
    probs = chance.dirichlet(np.ones(k), n).astype((np.float32, np.float64)[chance.integers(2)])
    kind = str(chance.choice(["probs", "logits", "top1"]))
    scores: dict[str, Any] = {"probs": {"probs": probs}, "logits": {"logits": np.log(probs + 1e-9)}}.get(
        kind, {"predicted": probs.argmax(1), "confidence": probs.max(1), "n_classes": k}
    )
    labels = chance.integers(0, k - 1 if chance.random() < 0.5 else k, n)
    if chance.random() < 0.5:
        scores["class_names"] = [f"{_text(chance)}{number}" for number in range(k)]
        if chance.random() < 0.5:
            scores["class_names"][0] = _text(chance)
    if chance.random() < 0.6:
        scores["groups"] = {
            ("site" if chance.random() < 0.5 else _text(chance)): [_text(chance) for _ in range(n)]
            for _ in range(int(chance.integers(1, 3)))
        }
    ids = chance.integers(6)
    if ids < 5:
        scores["ids"] = [
            np.arange(n),
            [f"{_text(chance)}{number}" for number in range(n)],
            np.arange(n).astype(np.int8 if n < 100 else np.int32),
            np.arange(n) + 2**60,
            np.arange(n, dtype=np.uint64),
        ][ids]
    weights = chance.random(n) + 0.1 if chance.random() < 0.3 else None
    return Predictions(**scores, labels=labels, weights=weights, split=[None, "test"][chance.integers(2)])


def _check_same(found: list[Predictions], expected: Predictions, where: str) -> None:
    for name in ("labels", "weights", "scores", "confidence", "predicted"):
        whole = getattr(expected, name)
        if whole is not None:
            joined = np.concatenate([getattr(part, name) for part in found])
            if not np.array_equal(joined, whole):
                raise Wrong(f"{where}: {name} changed")
    if any(list(part.groups) != list(expected.groups) for part in found):
        raise Wrong(
            f"{where}: names of groups changed: {list(found[0].groups)!r} from {list(expected.groups)!r}"[
                :250
            ]
        )
    for name, column in expected.groups.items():
        values = [str(value) for part in found for value in part.groups[name]]
        for value, original in zip(values, map(str, column), strict=True):
            if value != original:
                raise Wrong(f"{where}: a group changed from {original[:60]!r} to {value[:60]!r}")
    for part in found:
        if part.class_names != expected.class_names:
            raise Wrong(
                f"{where}: class names changed from {str(expected.class_names)[:80]} to {str(part.class_names)[:80]}"
            )
        if part.n_classes != expected.n_classes:
            raise Wrong(f"{where}: {expected.n_classes} classes became {part.n_classes}")
    if expected.has_kept_rows:
        joined = np.concatenate([part.rows.hashes for part in found])
        if not np.array_equal(joined, expected.rows.hashes):
            raise Wrong(f"{where}: the identity of the rows changed")


def _try_wide_table(chance: np.random.Generator, folder: Path) -> None:
    """A Parquet file with 30,000 columns, most of them not ours, is read within 20 seconds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {f"column {number}": np.zeros(2) for number in range(30_000)}
    columns |= {"labels": np.array([0, 1]), "predicted": np.array([0, 0]), "confidence": np.array([0.9, 0.8])}
    if chance.random() < 0.5:
        columns |= {f"group_{number}": np.zeros(2) for number in range(2000)}
    pq.write_table(pa.table(columns), folder / "wide.parquet")

    def read() -> None:
        if not np.array_equal(read_predictions(folder / "wide.parquet").confidence, [0.9, 0.8]):
            raise Wrong("other confidences")

    found = forked(read, folder, seconds=20)
    if found.code:
        raise Wrong(f"30,000 columns: {found.err.strip().splitlines()[-1:]}"[:200])


def try_output(_: None, chance: np.random.Generator, folder: Path) -> None:
    """Commands on files of awkward names and content give the numbers of the library, and printable output."""
    place = folder / PATHS[chance.integers(len(PATHS))]
    place.mkdir()
    path = place / f"{PATHS[chance.integers(len(PATHS))]}{chance.choice(['.npz', '.csv', '.parquet'])}"
    rows = _rows(chance)
    try:
        write_predictions(rows, path)
    except EquipoiseError:
        return
    what = str(chance.choice(["score", "audit", "report", "table", "compare"]))
    if what == "compare":
        _try_compare(chance, folder)
        return
    style = str(chance.choice(["text", "markdown", "latex", "csv"]))
    words: list[str | Path] = {
        "score": ["score", path, "--json"],
        "audit": ["audit", path],
        "report": ["report", path, "-o", place / "report.html", "--title", _argument(chance)],
        "table": ["compare-files", path, _other_method(rows, folder), "--format", style],
    }[what]
    found = command([*words, "--resamples", "5"], folder)
    fine = check_finished(found, what)
    # The path of a report is printed as it is, so that scripts can use it.
    _check_printable(found.err if what == "report" else found.out + found.err, what)
    if what == "table" and style == "csv":
        _check_cells(found.out)
    if what == "score" and not fine:
        try:
            score(rows, n_resamples=1)
        except EquipoiseError:
            return
        raise Wrong(f"score refuses a file that the library scores: {found.err.strip()[:200]}")
    if what == "score":
        value = json.loads(found.out)["scores"]["accuracy"]["value"]
        if abs(value - score(rows, n_resamples=1)["accuracy"].value) > 1e-9:
            raise Wrong(f"accuracy is {value}")


def _other_method(rows: Predictions, folder: Path) -> Path:
    (folder / "other").mkdir()
    write_predictions(rows, folder / "other" / "s0.npz")
    return folder / "other" / "s0.npz"


def _check_cells(text: str) -> None:
    """Look for text that a spreadsheet would take for a formula."""
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            is_number = re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", cell) is not None
            if cell.startswith(("=", "+", "-", "@")) and len(cell) > 1 and not is_number:
                raise Wrong(f"table: a cell of CSV is {cell[:40]!r}")


def _argument(chance: np.random.Generator) -> str:
    return _text(chance).replace("\0", "") or "x"


def _check_printable(text: str, what: str) -> None:
    odd = {letter for letter in text if not letter.isprintable() and letter not in "\n\t"}
    if odd:
        raise Wrong(f"{what}: prints {sorted(odd)[:5]!r}")


def _try_compare(chance: np.random.Generator, folder: Path) -> None:
    """Files in folders with `=` in their names are as many methods as there are folders."""
    labels = np.arange(40) % 2
    names = [
        str(name) for name in chance.choice(["lr=0.1", "lr=0.01", "a=b=c", "x+y=1", "=z"], 2, replace=False)
    ]
    expected = {}
    words: list[str | Path] = ["compare-files"]
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        probs = chance.dirichlet(np.ones(2), 40)
        rows = Predictions(probs=probs, labels=labels, ids=np.arange(40))
        write_predictions(rows, folder / name / "s0.npz")
        expected[name] = score(rows, n_resamples=1)["ece"].value
        words.append(f"{name}/s0.npz")
    found = command([*words, "--json", "--resamples", "5"], folder)
    if not check_finished(found, "compare-files"):
        return
    text = json.loads(found.out)
    values = sorted(_values(text, "ece"))
    if any(min((abs(value - one) for one in values), default=1) > 1e-6 for value in expected.values()):
        raise Wrong(f"compare-files {names}: ECE of {list(expected.values())} is shown as {values[:6]}")


def _values(table: Any, metric: str) -> list[float]:
    """Find all values of a metric in JSON of any shape."""
    found: list[float] = []
    if isinstance(table, dict):
        if table.get("metric") == metric:
            found += [v for k, v in table.items() if k in ("value", "mean") and isinstance(v, int | float)]
        if isinstance(table.get(metric), int | float):
            found.append(table[metric])
    for entry in table.values() if isinstance(table, dict) else table if isinstance(table, list) else ():
        found += _values(entry, metric)
        if isinstance(entry, dict) and entry is (table.get(metric) if isinstance(table, dict) else None):
            found += [v for k, v in entry.items() if k in ("value", "mean") and isinstance(v, int | float)]
    return found
