# SPDX-License-Identifier: Apache-2.0
"""The sizes that src/vgpu/nvml/nvml_shapes.h asserts are those of pynvml's structures, so that both sides agree.

Needs nvidia-ml-py: in this interpreter, or in the site-packages folder that TONNAGE_PYNVML names."""
import ctypes
import importlib.util
import os
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSERTION = re.compile(r"_Static_assert\((?:sizeof|offsetof)\(struct [\w, ]+\) == (\d+), \"(\w+)\"\)")


def load_pynvml():
    folder = os.environ.get("TONNAGE_PYNVML")
    if folder:
        spec = importlib.util.spec_from_file_location("pynvml", pathlib.Path(folder) / "pynvml.py")
        module = sys.modules["pynvml"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    return pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed (or name it in TONNAGE_PYNVML)")


def test_sizes_are_those_of_pynvml():
    pynvml = load_pynvml()
    rows = ASSERTION.findall((ROOT / "src/vgpu/nvml/nvml_shapes.h").read_text())
    assert len(rows) >= 10
    for size, name in rows:
        assert ctypes.sizeof(getattr(pynvml, name)) == int(size), name


def test_versions_are_those_of_pynvml():
    pynvml = load_pynvml()
    assert pynvml.nvmlMemory_v2 == 40 | 2 << 24
    assert pynvml.nvmlTemperature_v1 == 12 | 1 << 24
    assert pynvml.nvmlGpuFabricInfo_v2 == 36 | 2 << 24
