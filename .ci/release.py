"""Make a release, or rehearse one: version, changelog, wheel and sdist, and commands run from both.

    python .ci/release.py                    rehearse: build this version, check it, run audit and demo from it
    python .ci/release.py --version 0.2.0    the same for a new version: writes it, and gathers the changelog
    python .ci/release.py --version 0.2.0 --tag   and commits and tags, if all steps succeeded

Nothing is uploaded. The remaining steps are printed at the end.
"""

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "equipoise" / "__init__.py"
CITATION = ROOT / "CITATION.cff"
VERSION = re.compile(r'^__version__ = "(\d+\.\d+\.\d+)"$', re.MULTILINE)
#: Files of the package that the wheel must contain; see package-data in pyproject.toml.
REQUIRED = (
    "equipoise/py.typed",
    "equipoise/catalogue/entries/",
    "equipoise/data/embedded/demo.toml",
    "equipoise/data/embedded/digits.npz",
    "equipoise/experiments/papers/",
    "equipoise/report/templates/",
)
FIND_PREDICTIONS = (
    "from importlib.resources import files; print(files('equipoise') / 'data/embedded/digits.npz')"
)


def run(*words: str | Path) -> None:
    print("$", *words, flush=True)
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True)


def current() -> str:
    return VERSION.search(PACKAGE.read_text())[1]


def set_version(version: str) -> None:
    """Write the version into the package and the citation, and gather the changelog fragments."""
    numbers = [tuple(map(int, text.split("."))) for text in (version, current())]
    if numbers[0] < numbers[1]:
        sys.exit(f"release: the version must be at least {current()}, got {version}.")
    PACKAGE.write_text(VERSION.sub(f'__version__ = "{version}"', PACKAGE.read_text()))
    CITATION.write_text(re.sub(r"(?m)^version: .*$", f"version: {version}", CITATION.read_text()))
    run(sys.executable, "-m", "towncrier", "build", "--yes", "--version", version)


def build(folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist, and check that they contain all required files and no others."""
    for kind in ("--wheel", "--sdist"):
        run(sys.executable, "-m", "build", kind, "--outdir", folder)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened, tarfile.open(sdist) as source:
        names, sources = opened.namelist(), source.getnames()
    for required in REQUIRED:
        if not any(name.startswith(required) for name in names):
            sys.exit(f"release: {required} is missing in {wheel.name}. See package-data in pyproject.toml.")
    if others := {name.split("/")[0] for name in names if not name.startswith("equipoise")}:
        sys.exit(f"release: {wheel.name} also contains {', '.join(sorted(others))}.")
    if not any(name.endswith("/LICENSE") for name in sources):
        sys.exit(f"release: the license is missing in {sdist.name}.")
    if find_spec("twine"):
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    else:
        print("release: twine is not installed; the description was not checked.")
    return wheel, sdist


def try_archive(archive: Path, *, demo: bool) -> None:
    """Install wheel or sdist without torch, then with it, and run commands from a folder without the sources."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        for extras in ("", "[train,data]"):
            quiet = ("--quiet", "--disable-pip-version-check")
            run(python, "-m", "pip", "install", *quiet, "-c", ROOT / "constraints.txt", f"{archive}{extras}")
            has_torch = output_of(
                [python, "-c", "import importlib.util as u; print(bool(u.find_spec('torch')))"]
            )
            if has_torch != str(bool(extras)):
                sys.exit(
                    f"release: after installing {archive.name}{extras}, 'torch is installed' is {has_torch}."
                )
            try_commands(python, folder, archive)
        if demo:
            run_in(folder, [python, "-P", "-m", "equipoise", "demo", "--out", "demo"])
            if "<html" not in (folder / "demo" / "report.html").read_text(encoding="utf-8"):
                sys.exit("release: the demo wrote no report.")


def try_commands(python: Path, folder: Path, archive: Path) -> None:
    """Check the version, audit the embedded predictions, calibrate them and write a report."""
    equipoise = [python, "-P", "-m", "equipoise"]
    printed = output_of([*equipoise, "--version"], folder)
    if current() not in printed:
        sys.exit(f"release: {archive.name} prints the version {printed!r}, the sources have {current()}.")
    predictions = output_of([python, "-P", "-c", FIND_PREDICTIONS], folder)
    run_in(folder, [*equipoise, "audit", predictions, "--max", "ece=50%"])
    run_in(folder, [*equipoise, "calibrate", predictions, "--holdout", "0.3", "-o", "calibrator.json"])
    run_in(folder, [*equipoise, "report", predictions, "-o", "report.html"])
    if "<html" not in (folder / "report.html").read_text(encoding="utf-8"):
        sys.exit(f"release: {archive.name} wrote no report.")


def run_in(folder: Path, words: list[str | Path]) -> None:
    print("$", *words[2:], flush=True)
    subprocess.run([str(word) for word in words], cwd=folder, check=True)


def output_of(words: list[str | Path], folder: Path = ROOT) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", help="as 1.2.3")
    parser.add_argument("--tag", action="store_true", help="commit and tag at the end")
    given = parser.parse_args()
    if given.version and not re.fullmatch(r"\d+\.\d+\.\d+", given.version):
        parser.error(f"--version must be like 1.2.3, got {given.version!r}.")
    if given.tag and not given.version:
        parser.error("--tag goes with --version.")
    dirty = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True).stdout
    if given.version and dirty:
        sys.exit("release: the working tree has uncommitted changes. Commit or undo them first.")
    if given.version:
        set_version(given.version)
    else:
        run(sys.executable, "-m", "towncrier", "build", "--draft", "--version", current())
    dist = ROOT / "dist"
    for old in [*dist.glob("*.whl"), *dist.glob("*.tar.gz")]:
        old.unlink()
    wheel, sdist = build(dist)
    try_archive(wheel, demo=True)
    try_archive(sdist, demo=False)
    if given.tag:
        run("git", "add", "--all")
        run("git", "commit", "-m", f"Version {given.version}")
        run("git", "tag", "-a", f"v{given.version}", "-m", f"Version {given.version}")
    print(f"\nready: {wheel.relative_to(ROOT)}, {sdist.relative_to(ROOT)}")
    print("then:  look at CHANGELOG.md; git push --follow-tags; python -m twine upload dist/*")


if __name__ == "__main__":
    main()
