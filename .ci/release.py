"""Make a release, or rehearse one: version, changelog, wheel and sdist, and the demo run from the wheel.

    python .ci/release.py                    rehearse: build this version, check it, run the demo from the wheel
    python .ci/release.py --version 0.2.0    the same for a new version: writes it, and gathers the changelog
    python .ci/release.py --version 0.2.0 --tag   and commits and tags, once all of it went well

Nothing is uploaded. The steps after are written at the end.
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
DOOR = ROOT / "src" / "equipoise" / "__init__.py"
CITATION = ROOT / "CITATION.cff"
VERSION = re.compile(r'^__version__ = "(\d+\.\d+\.\d+)"$', re.MULTILINE)


def run(*words: str | Path) -> None:
    print("$", *words, flush=True)
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True)


def current() -> str:
    return VERSION.search(DOOR.read_text())[1]


def set_version(version: str) -> None:
    """Write the version where it is written, gather the fragments, and say it in the citation."""
    numbers = [tuple(map(int, text.split("."))) for text in (version, current())]
    if numbers[0] < numbers[1]:
        sys.exit(f"release: the version must be at least {current()}, got {version}.")
    DOOR.write_text(VERSION.sub(f'__version__ = "{version}"', DOOR.read_text()))
    CITATION.write_text(re.sub(r"(?m)^version: .*$", f"version: {version}", CITATION.read_text()))
    run(sys.executable, "-m", "towncrier", "build", "--yes", "--version", version)


def build(folder: Path) -> tuple[Path, Path]:
    """Build both, and look inside: the wheel holds what the package reads, and nothing of the workshop."""
    for kind in ("--wheel", "--sdist"):
        run(sys.executable, "-m", "build", kind, "--outdir", folder)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened, tarfile.open(sdist) as source:
        names, sources = opened.namelist(), source.getnames()
    for wanted in (
        "equipoise/py.typed",
        "equipoise/data/embedded/demo.toml",
        "equipoise/experiments/papers/",
    ):
        if not any(name.startswith(wanted) for name in names):
            sys.exit(f"release: {wanted} is missing in {wheel.name}. See package-data in pyproject.toml.")
    if strangers := {name.split("/")[0] for name in names if not name.startswith("equipoise")}:
        sys.exit(f"release: {wheel.name} holds {', '.join(sorted(strangers))} too.")
    if not any(name.endswith("/LICENSE") for name in sources):
        sys.exit(f"release: the license is missing in {sdist.name}.")
    if find_spec("twine"):
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    else:
        print("release: twine is not installed; the description was not checked.")
    return wheel, sdist


def try_wheel(wheel: Path) -> None:
    """Install the wheel into an empty environment, and run the demo from it, far from the sources."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "venv", with_pip=True)
        python = place / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        quiet = ("--quiet", "--disable-pip-version-check")
        run(python, "-m", "pip", "install", *quiet, "-c", ROOT / "constraints.txt", f"{wheel}[train,data]")
        words = [str(python), "-P", "-m", "equipoise"]
        said = subprocess.run(
            [*words, "--version"], cwd=place, check=True, capture_output=True, text=True
        ).stdout
        if current() not in said:
            sys.exit(f"release: the wheel says {said.strip()!r}, the sources {current()}.")
        subprocess.run([*words, "demo", "--out", "demo"], cwd=place, check=True)
        if "<html" not in (place / "demo" / "report.html").read_text(encoding="utf-8"):
            sys.exit("release: the demo wrote no report.")


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
        sys.exit("release: there are changes that are not committed. Commit or undo them first.")
    if given.version:
        set_version(given.version)
    dist = ROOT / "dist"
    for old in [*dist.glob("*.whl"), *dist.glob("*.tar.gz")]:
        old.unlink()
    wheel, sdist = build(dist)
    try_wheel(wheel)
    if given.tag:
        run("git", "add", "--all")
        run("git", "commit", "-m", f"Version {given.version}")
        run("git", "tag", "-a", f"v{given.version}", "-m", f"Version {given.version}")
    print(f"\nready: {wheel.relative_to(ROOT)}, {sdist.relative_to(ROOT)}")
    print("then:  look at CHANGELOG.md; git push --follow-tags; python -m twine upload dist/*")


if __name__ == "__main__":
    main()
