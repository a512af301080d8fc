# SPDX-License-Identifier: Apache-2.0
"""CuPy, which brings its own CUDA runtime."""

import cupy

print(float(cupy.ones((256, 256)).sum()))
