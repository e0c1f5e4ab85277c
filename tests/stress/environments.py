"""Environments that a program may run in: settings of libraries, variables, plugins, closed output; same numbers."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from equipoise import Predictions, write_predictions
from stress import package_numbers
from stress.children import Finished, command, forked, fresh
from stress.judge import Wrong

#: What a program sets in its own process.
SETTINGS: tuple[dict[str, Any], ...] = (
    {"device": "meta"}, {"dtype": "float16"}, {"dtype": "bfloat16"}, {"dtype": "float64"}, {"seterr": "raise"},
    {"no_grad": True}, {"dtype": "float64", "seterr": "raise"},
)  # fmt: skip
#: Variables of a process that has to be started anew.
VARIABLES: tuple[dict[str, str], ...] = (
    {"NUMBA_DISABLE_JIT": "1"}, {"PYTHONOPTIMIZE": "2"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"NUMBA_CACHE_DIR": "/proc/nowhere"}, {"EQUIPOISE_PLAIN": "1"}, {"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "20"},
    {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}, {"PYTHONHASHSEED": "7"}, {"HOME": "/nonexistent"},
    {"MPLCONFIGDIR": "/proc/nowhere"}, {"TZ": "Asia/Kathmandu"}, {"OMP_NUM_THREADS": "2"},
)  # fmt: skip
MATPLOTLIBRC = (
    "text.usetex: True\n", "backend: TkAgg\n", "svg.fonttype: none\nfont.size: 0.1\n", "nonsense\n",
    "axes.grid: maybe\n", "backend: module://nowhere\n", "savefig.directory: /nowhere\nsavefig.dpi: 1\n", "\x00\xff",
)  # fmt: skip
PLUGINS = (
    "raise RuntimeError('broken')",
    "import sys; sys.exit(3)",
    "import nowhere",
    "entry = 3",
    "1 / 0",
    "x = ",
)


def prepare_environments(folder: Path) -> Path:
    chance = np.random.default_rng(0)
    rows = Predictions(
        probs=chance.dirichlet(np.ones(3), 40), labels=np.arange(40) % 3, class_names=["é", "ß", "日"]
    )
    write_predictions(rows, folder / "rows.npz")
    package_numbers.numbers(folder, 0)
    return folder / "rows.npz"


def try_environment(rows: Path, chance: np.random.Generator, folder: Path) -> None:
    how = str(
        chance.choice(
            ["settings", "variables", "plugin", "matplotlibrc", "output"], p=[0.4, 0.3, 0.1, 0.1, 0.1]
        )
    )
    ATTEMPTS[how](rows, chance, folder)


def _try_settings(rows: Path, chance: np.random.Generator, folder: Path) -> None:
    """Numbers after the program changed a setting of torch or NumPy."""
    settings, seed = SETTINGS[chance.integers(len(SETTINGS))], int(chance.integers(2**31))
    expected = _forked_numbers(folder, seed, {})
    _compare(_forked_numbers(folder, seed, settings), expected, str(settings))


def _forked_numbers(folder: Path, seed: int, settings: dict[str, Any]) -> dict[str, float]:
    def work() -> None:
        package_numbers.apply_settings(settings)
        (folder / "numbers.json").write_text(json.dumps(package_numbers.numbers(folder, seed)))

    return _read(forked(work, folder), folder, str(settings))


def _read(found: Finished, folder: Path, what: str) -> dict[str, float]:
    if found.code:
        frames = [line.strip() for line in found.err.splitlines() if "/equipoise/" in line]
        place = frames[-1].partition("/equipoise/")[2] if frames else ""
        raise Wrong(
            f"{what}: exit code {found.code}: {' '.join(found.err.strip().splitlines()[-1:])[:150]} {place}"
        )
    values: dict[str, float] = json.loads((folder / "numbers.json").read_text())
    return values


def _compare(found: dict[str, float], expected: dict[str, float], what: str) -> None:
    if found.keys() != expected.keys():
        raise Wrong(f"{what}: other numbers: {sorted(found.keys() ^ expected.keys())[:5]}")
    for name, value in expected.items():
        if not abs(found[name] - value) <= 1e-6 * (1 + abs(value)):
            raise Wrong(f"{what}: {name} is {found[name]}, not {value}")


def _try_variables(rows: Path, chance: np.random.Generator, folder: Path) -> None:
    """Numbers in a process with one or two variables set."""
    some = [VARIABLES[n] for n in chance.permutation(len(VARIABLES))[: chance.integers(1, 3)]]
    variables = {name: value for one in some for name, value in one.items()}
    seed = int(chance.integers(2**31))
    expected = _forked_numbers(folder, seed, {})
    script = ["-P", Path(package_numbers.__file__), folder, str(seed), "{}"]
    _compare(
        _read(fresh(script, folder, environment=variables), folder, str(variables)), expected, str(variables)
    )


def _try_plugin(rows: Path, chance: np.random.Generator, folder: Path) -> None:
    """A plugin that cannot be imported is named, and everything else works."""
    site = folder / "site"
    (site / "broken_plugin-1.0.dist-info").mkdir(parents=True)
    (site / "broken_plugin-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n"
    )
    category = str(chance.choice(["losses", "models", "nowhere"]))
    (site / "broken_plugin-1.0.dist-info" / "entry_points.txt").write_text(
        f"[equipoise]\n{category}.mine = broken_plugin:entry\n"
    )
    code = PLUGINS[chance.integers(len(PLUGINS))]
    (site / "broken_plugin.py").write_text(code)
    words = [
        ["list", "losses"],
        ["show", "focal"],
        ["list", "losses", "--json"],
        ["score", rows, "--resamples", "5"],
    ]
    chosen = words[chance.integers(len(words))]
    found = fresh(["-m", "equipoise", *chosen], folder, path=[site])
    if found.code or "Traceback" in found.err:
        raise Wrong(f"{chosen[0]} with a plugin {code!r}: exit code {found.code}: {found.err.strip()[-150:]}")
    if chosen[0] == "list" and "broken" not in found.err + found.out:
        raise Wrong(f"{chosen[0]} with a plugin {code!r}: the plugin is not named")


def _try_matplotlibrc(rows: Path, chance: np.random.Generator, folder: Path) -> None:
    """A matplotlibrc in the working directory changes no figure."""

    def draw(place: Path) -> tuple[Finished, str]:
        found = fresh(["-m", "equipoise", "plot", "phi", "-o", "phi.svg"], place)
        path = place / "phi.svg"
        figure = path.read_text() if path.exists() else ""
        return found, re.sub(r"\b[mp][0-9a-f]{10}\b", "name", figure)  # names of parts are random

    (folder / "plain").mkdir()
    text = MATPLOTLIBRC[chance.integers(len(MATPLOTLIBRC))]
    (folder / "matplotlibrc").write_text(text, encoding="latin-1")
    (_, expected), (found, figure) = draw(folder / "plain"), draw(folder)
    if found.code or "Traceback" in found.err:
        raise Wrong(
            f"plot beside a matplotlibrc of {text!r}: exit code {found.code}: {found.err.strip()[-150:]}"
        )
    if figure != expected:
        raise Wrong(f"plot beside a matplotlibrc of {text!r} draws another figure")


def _try_output(rows: Path, chance: np.random.Generator, folder: Path) -> None:
    """Output that is closed, or cannot hold our letters, stops no command; text is the same but for its form."""
    words = [
        ["audit", rows, "--resamples", "5"],
        ["score", rows, "--resamples", "5"],
        ["report", rows, "-o", "page.html", "--resamples", "5"],
        ["list", "losses"],
        ["merge", rows, "-o", "x.state"],
    ][chance.integers(5)]
    closed = chance.random() < 0.5
    variables = {} if closed else VARIABLES[int(chance.choice([2, 5, 6, 7, 8, 9]))]
    expected = command(words, folder)
    found = fresh(["-m", "equipoise", *words], folder, environment=variables, closed_output=closed)
    what = f"{words[0]} with {'closed output' if closed else variables}"
    if found.code != expected.code or "Traceback" in found.err:
        raise Wrong(f"{what}: exit code {found.code}, not {expected.code}: {found.err.strip()[-150:]}")
    if words[0] == "report" and not (folder / "page.html").exists():
        raise Wrong(f"{what}: no page")


ATTEMPTS = {
    "settings": _try_settings,
    "variables": _try_variables,
    "plugin": _try_plugin,
    "matplotlibrc": _try_matplotlibrc,
    "output": _try_output,
}
os.environ.setdefault("MPLBACKEND", "Agg")
