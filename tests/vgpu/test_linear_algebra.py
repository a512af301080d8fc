# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices and torch.linalg: what takes no buffer of a library runs, what does is refused, counted and shown."""

import pytest
from conftest import WHEELS

RUNS = {"batched cholesky", "cholesky_solve", "batched inv", "solve_triangular", "coo mm", "coo add", "to_dense", "SparseAdam"}
REFUSED = {"cholesky", "qr", "svd", "eigh", "solve", "csr mm"}


@pytest.mark.parametrize("environment", WHEELS)
def test_linear_algebra(tonnage, environment):
    run = tonnage(environment, "programs/linear_algebra.py", "--gpu=rtx3060")
    assert run.verdict == "fits" and run.status == 0, run.explain()
    lines = run.stdout.splitlines()
    assert {line.removesuffix(" ran") for line in lines if line.endswith(" ran")} == RUNS, run.explain()
    assert {line.removesuffix(" refused True") for line in lines if "refused" in line} == REFUSED, run.explain()
    refused = run.report["coverage"]["refused_calls"]
    assert refused and all(call["name"].startswith(("cusolver", "cusparse")) for call in refused), run.explain()
    assert "refused" in run.stderr and "cusolver" in run.stderr, run.explain()
