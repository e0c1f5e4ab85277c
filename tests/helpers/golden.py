"""The worked values of ``golden/golden.json``."""

import json
from pathlib import Path
from typing import Any

_FILE = json.loads((Path(__file__).parents[1] / "golden" / "golden.json").read_text())
#: Parameters and results, by name.
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in _FILE["cases"]}
#: Logits or probabilities, and labels, by name.
BATCHES: dict[str, dict[str, Any]] = _FILE["batches"]
