"""Code of users: what nobody named is never run, and what is named is what runs, is announced and is pinned."""

import ast
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from equipoise import Predictions, write_predictions
from helpers.own_code import CODE
from stress.children import SOURCE, Finished, command, fresh, warm_up
from stress.judge import Wrong

COMPARISON = """
name = "shadow"
data = { name = "digits", options = { noise = 0.3 } }
model = { name = "mlp", options = { hidden = [8] } }
method = ["ce", "focal"]
recipe = { name = "quick", epochs = 1 }
"""
#: Modules that packages of ours import in turn.
INDIRECT = (
    "typing_extensions", "psutil", "yaml", "msgpack", "packaging", "sympy", "networkx", "jsonschema", "markupsafe",
    "llvmlite", "pygments", "dateutil", "six", "requests", "attr", "fsspec", "mpmath", "PIL", "cycler", "kiwisolver",
)  # fmt: skip
SHADOW = """
import os
with open({mark!r}, "a") as mark:
    mark.write(__name__ + " ")
raise ImportError("a module that nobody named was run")
"""


def imported_modules() -> list[str]:
    """Return the top names of all modules that the package imports and that are not of Python itself."""
    found = set(INDIRECT)
    for file in Path(SOURCE, "equipoise").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            found |= {name.partition(".")[0] for name in names}
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("require", "import_module"):
                found |= {
                    re.split(r"\.", str(a.value))[0] for a in node.args[:1] if isinstance(a, ast.Constant)
                }
    return sorted(found - set(sys.stdlib_module_names) - {"equipoise", ""})


def prepare_shadowing(folder: Path) -> tuple[Path, list[str]]:
    chance = np.random.default_rng(0)
    rows = Predictions(probs=chance.dirichlet(np.ones(3), 40), labels=np.arange(40) % 3)
    write_predictions(rows, folder / "rows.npz")
    write_predictions(rows, folder / "rows.parquet")
    (folder / "spec.toml").write_text(COMPARISON)
    (folder / "run.toml").write_text(
        COMPARISON.replace('name = "shadow"\n', "").replace('["ce", "focal"]', '"ce"')
    )
    return folder, imported_modules()


def try_shadowing(prepared: tuple[Path, list[str]], chance: np.random.Generator, folder: Path) -> None:
    """Modules beside the files of a command, named like some that we import, are never run."""
    source, names = prepared
    place, mark = folder / "here", folder / "mark"
    shutil.copytree(source, place)
    chosen = [str(name) for name in chance.choice(names, int(chance.integers(1, 9)), replace=False)]
    for name in chosen:
        if chance.random() < 0.7:
            (place / f"{name}.py").write_text(SHADOW.format(mark=str(mark)))
        else:
            (place / name).mkdir()
            (place / name / "__init__.py").write_text(SHADOW.format(mark=str(mark)))
    there = chance.random() < 0.6  # else the command is given from elsewhere
    base = place if there else folder
    near = Path() if there else place
    run = ["-m", "equipoise"] if chance.random() < 0.7 else ["-P", "-c", _SCRIPT]
    what = str(chance.choice(list(COMMANDS), p=[share for _, share in COMMANDS.values()]))
    words = [word.format(near=f"{near}/" if near.parts else "") for word in COMMANDS[what][0].split()]
    found = fresh([*run, *words], base)
    if mark.exists():
        raise Wrong(
            f"{what} ran {mark.read_text().split()[0]} {'of the working directory' if there else 'beside the file'}"
        )
    if found.code:
        raise Wrong(f"{what}: exit code {found.code} beside {chosen}: {found.err.strip()[-150:]}")


_SCRIPT = "import sys; from equipoise.cli import main; sys.exit(main(sys.argv[1:]))"
#: Commands, and how often each is tried.
COMMANDS: dict[str, tuple[str, float]] = {
    "audit": ("audit {near}rows.npz --resamples 5", 0.2),
    "score of Parquet": ("score {near}rows.parquet --resamples 5", 0.2),
    "list": ("list losses", 0.1),
    "report": ("report {near}rows.npz -o {near}page.html --resamples 5", 0.1),
    "train": ("train {near}run.toml --out {near}runs --resamples 5 --no-code --quiet", 0.1),
    "compare by workers": (
        "compare {near}spec.toml --out {near}runs --workers 2 --resamples 5 --no-code --quiet", 0.2),
    "compare by Ray": (
        "compare {near}spec.toml --out {near}runs --engine ray --resamples 5 --no-code --quiet", 0.06),
    "audit by Ray": ("audit {near}rows.parquet --engine ray --resamples 5", 0.04),
}  # fmt: skip


RUN_SPEC = """
data = {{ name = "digits", options = {{ noise = 0.3 }} }}
model = {model}
method = {method}
recipe = {{ name = "quick", epochs = 1 }}
"""
#: Folders and files whose names hold what also joins terms, or other letters that need care.
FOLDERS = ("", "a+b", "x y", "lr=0.1", "a*b", "c++", "[1]", "é", "a.b", "a,b", "a#b", "1+2*3")
FILES = ("mine.py", "my net.py", "net+old.py", "v=2.py", "net-1.py", "a*b.py", "2x.py", "n.et.py", "Ünet.py")
#: Appended to the code: leaves a mark when it is run.
TRACE = """
with open({mark!r}, "a") as _mark:
    _mark.write({file!r} + "\\n")
"""


def prepare_references(folder: Path) -> None:
    (folder / "mine.py").write_text(CODE)
    (folder / "sizes.py").write_text("WIDTH = 8\n")
    (folder / "run.toml").write_text(RUN_SPEC.format(model='"mine.py:Net"', method='"mine.py:squares"'))
    warm_up(["train", folder / "run.toml", "--out", folder / "runs", "--resamples", "5"])


def try_reference(_: None, chance: np.random.Generator, folder: Path) -> None:
    """The files that run are those announced; after an edit of one of them the same command makes a new run."""
    home, mark = folder / "home", folder / "mark"
    home.mkdir()
    chosen = _write(home, mark, chance)
    role = str(chance.choice(["model", "method", "both"]))
    model = f'"{chosen}:Net"' if role != "method" else '{ name = "mlp", options = { hidden = [8] } }'
    method = f'"{chosen}:squares"' if role != "model" else '"ce"'
    (home / "run.toml").write_text(RUN_SPEC.format(model=model, method=method))
    words = ["train", home / "run.toml", "--out", folder / "runs", "--resamples", "5"]
    first = command(words, folder)
    if _refused(first, mark, chosen):
        return
    ran = set(mark.read_text().splitlines()) if mark.exists() else set()
    target = str((home / chosen).resolve())
    if ran != {target}:
        raise Wrong(f"{role} {chosen!r}: ran {sorted(ran)}"[:250])
    announced = " ".join(first.err.split())
    if Path(chosen).name not in announced.partition("runs code:")[2]:
        raise Wrong(f"{role} {chosen!r}: not announced: {announced[-150:]}")
    before = {path.name for path in (folder / "runs").iterdir()}
    file = home / chosen
    file.write_text(file.read_text().replace("nn.ReLU()", "nn.Tanh()").replace("power=2.0", "power=3.0"))
    second = command(words, folder)
    made = {path.name for path in (folder / "runs").iterdir()} - before
    if second.code or "already finished" in second.err or not made:
        raise Wrong(f"{role} {chosen!r}: was edited, and is not run anew: {second.err.strip()[-120:]}")


def _write(home: Path, mark: Path, chance: np.random.Generator) -> str:
    """Write the file that is named, and others that a careless reading of the name would find."""
    place = "/".join(filter(None, [str(chance.choice(FOLDERS)) for _ in range(int(chance.integers(1, 3)))]))
    chosen = "/".join(filter(None, [place, str(chance.choice(FILES))]))
    parts = re.split(r"[+*=, ]", chosen)
    decoys: Sequence[str] = [part if part.endswith(".py") else f"{part}.py" for part in parts if part]
    for name in dict.fromkeys([*decoys, "+".join(parts), Path(chosen).name, chosen]):
        file = home / name
        if file.exists() or file.is_dir():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        code = CODE.replace("from sizes import WIDTH", "WIDTH = 8")
        file.write_text(code + TRACE.format(mark=str(mark), file=str(file.resolve())))
    return chosen


def _refused(found: Finished, mark: Path, chosen: str) -> bool:
    if found.code == 0:
        return False
    lines = [line for line in found.err.splitlines() if line.strip()]
    if found.code != 2 or "Traceback" in found.err:
        raise Wrong(f"{chosen!r}: exit code {found.code}: {' '.join(lines[-1:])[:200]}")
    if mark.exists():
        raise Wrong(
            f"{chosen!r}: refused after {mark.read_text().splitlines()[0]} was run: {lines[-1][:150]}"
        )
    return True
