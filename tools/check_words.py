"""Check that texts and names use the words of the field, not private ones; print each place that does not.

python tools/check_words.py [FILE ...]     # by default every tracked Python and Markdown file
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What not to write, and what to write instead.
WORDS = {
    r"\bthe house\b|\brooms\b|\ba room\b|\broom's\b": "architecture, package, layer",
    r"\bknobs?\b": "hyperparameter",
    r"\bthe plain way\b|\bgoing plain\b": "fallback, backend",
    r"\b(is|are|was|were|be) told\b|_told\b|\btold_": "reported, printed, message",
    r"\barenas?\b(?! ordblks)": "benchmark",
    r"\bslips?\b": "input mistake",
    r"\bpictures?\b": "figure",
    r"\bsureness\b": "confidence, ood_score",
    r"\bover-confiden|\bunder-confiden": "overconfident, underconfident",
    r"\d %(?!\w| [\d(])": "no space before %",
    r"(?-i:\bBORN\b|\bBeside\b|\bWanted\b|\bAsked\b|\bJudged\b)": "a conventional name",
}
#: Files that quote others' words or are not prose of ours.
SKIPPED = re.compile(r"^(tools/check_words\.py|LICENSE|evidence/.*\.csv|CHANGELOG\.md|tests/golden/)")


def tracked_files() -> Iterator[Path]:
    """Yield the Python and Markdown files that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    yield from (ROOT / name for name in listed.stdout.splitlines() if not SKIPPED.match(name))


def problems(path: Path) -> Iterator[str]:
    """Yield one line for every private word of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for word, instead in WORDS.items():
            if found := re.search(f"(?i:{word})", line):
                yield f"{path.relative_to(ROOT)}:{number}: {found[0]!r}; write {instead}"


def main(files: list[str]) -> int:
    """Print every problem; return 1 if there is any."""
    paths = [Path(name).resolve() for name in files] or list(tracked_files())
    found = [line for path in paths if path.exists() for line in problems(path)]
    print("\n".join(found) if found else "words: no private words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
