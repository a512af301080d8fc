# SPDX-License-Identifier: Apache-2.0
"""Thirty calls that the virtual libraries refuse (the product of two sparse matrices), each of them swallowed."""

import torch

sparse = torch.eye(64, device="cuda").to_sparse_csr()
for _ in range(30):
    try:
        sparse @ sparse
    except RuntimeError:
        pass
print("went on")
