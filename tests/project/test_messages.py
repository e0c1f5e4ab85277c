"""Every message of ours explains itself, or the page on errors explains it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
#: Phrases in the first column of the page's tables.
PHRASES = [
    phrase
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for phrase in re.findall(r"`([^`]+)`", line.split("|")[1])
]
OURS = {
    "DataError",
    "SpecError",
    "SplitError",
    "FileError",
    "NotFittedError",
    "MissingExtraError",
    "ValueError",
    "TypeError",
    "RuntimeError",
    "click.UsageError",
    "click.BadParameter",
    "self.fail",
    "reader.fail",
    "self._reader.fail",
}
#: Whoever reads one of these knows what to give instead.
WANTED = re.compile(
    r"\b(must|expected|wanted|need(?:s|ed)?|give|pass|use|go(?:es)? with|is for|only|may be given|at least"
    r"|are the least|one value per)\b"
)


def text_of(node):
    """Return a message as far as it is written in the source; {} stands for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return "{}"


def messages():
    for path in sorted((ROOT / "src" / "equipoise").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                message = text_of(node.exc.args[0])
                # A sentence ends; what does not is a reason that another message holds in brackets.
                if ast.unparse(node.exc.func) in OURS and re.search(r"\w.*[.?!]$", message):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", message


def explains_itself(message):
    remedy = re.search(r"[.?!;] \S", message)  # a second sentence says what to do
    return remedy or WANTED.search(message) or any(phrase in message for phrase in PHRASES)


def test_every_message_explains_itself_or_is_on_the_page():
    found = list(messages())
    assert len(found) > 400
    assert [f"{where}: {message}" for where, message in found if not explains_itself(message)] == []


def test_every_class_of_errors_is_on_the_page():
    tree = ast.parse((ROOT / "src/equipoise/core/errors.py").read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    assert len(names) == 9
    assert all(f"`{name}`" in PAGE or f".{name}`" in PAGE for name in names)


def test_phrases_of_the_page_are_said_somewhere():
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    joined = re.sub(r'"\s*f?r?"', "", source)
    assert [phrase for phrase in PHRASES if phrase not in joined and not phrase.endswith("Error")] == []
