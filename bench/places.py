# SPDX-License-Identifier: Apache-2.0
"""Where the benches find what they run: TONNAGE and TONNAGE_ENVS (as tools/envs reads it) say so otherwise."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TONNAGE = pathlib.Path(os.environ.get("TONNAGE", ROOT / "build/bin/tonnage"))
ENVIRONMENTS = pathlib.Path(os.environ.get("TONNAGE_ENVS", pathlib.Path.home() / ".cache/tonnage/envs"))
PYTHON = ENVIRONMENTS / "torch-2.11.0/bin/python"
