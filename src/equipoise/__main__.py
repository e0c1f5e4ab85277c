"""``python -m equipoise`` is the command line."""

import os
import sys
from contextlib import suppress


def _leave_out_current_folder() -> None:
    """Do not import from the current folder, which ``python -m`` puts first: a file called numpy.py is not NumPy."""
    package_root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with suppress(OSError):  # the folder may be gone
        if not sys.flags.safe_path and sys.path[0] == os.getcwd() and sys.path[0] != package_root:
            del sys.path[0]


if __name__ == "__main__":
    _leave_out_current_folder()
    from equipoise.cli import main

    sys.exit(main())
