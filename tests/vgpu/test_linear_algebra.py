# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices and torch.linalg run, with workspaces by a model that the report names; a product of two sparse
matrices, whose size hangs on values, is refused, counted and shown."""

import pytest
from conftest import MAIN, WHEELS

FORKED = True  # ../fork_servers.py

RUNS = {
    *("batched cholesky", "cholesky_solve", "batched inv", "solve_triangular", "coo mm", "coo add", "to_dense"),
    *("SparseAdam", "cholesky", "qr", "svd", "svd gesvd", "svd gesvda", "batched svd", "eigh", "batched eigh", "solve"),
    *("lstsq", "ldl_solve", "ormqr", "csr mm", "csr mv", "csr transposed", "sampled_addmm"),
}
REFUSED = {"csr csr"}


@pytest.mark.parametrize("environment", WHEELS)
def test_linear_algebra(tonnage, environment):
    run = tonnage(environment, "programs/linear_algebra.py", "--gpu=rtx3060")
    assert run.verdict == "undecided" and run.status == 12, run.explain()  # it goes on after the refused one
    lines = run.stdout.splitlines()
    assert {line.removesuffix(" ran") for line in lines if line.endswith(" ran")} == RUNS, run.explain()
    assert {line.removesuffix(" refused True") for line in lines if line.endswith("refused True")} == REFUSED, run.explain()
    refused = run.report["coverage"]["refused_calls"]
    assert refused and all(call["name"].startswith("cusparseSpGEMM") for call in refused), run.explain()
    assert "refused" in run.stderr and "cusparse" in run.stderr, run.explain()
    assert "cuSOLVER, cuSPARSE" in run.report["sources"]["at_peak.by_category.workspaces"], run.explain()


@pytest.mark.parametrize("driver, wanted", [("gesvdj", 4 * (300 * 200 + 2 * 200 * 200)), ("gesvd", 4 * (600 + 64 * 500))])
def test_a_workspace_is_what_the_model_says(tonnage, tmp_path, driver, wanted):
    """The program sees its own peak: the operands, the results, and a workspace of the model's size."""
    (tmp_path / "svd.py").write_text(f"""
import torch
a = torch.randn(200, 300, device="cuda").mT
torch.linalg.svd(a, full_matrices=False, driver="{driver}")
torch.cuda.memory._record_memory_history()
torch.linalg.svd(a, full_matrices=False, driver="{driver}")
events = torch.cuda.memory._snapshot()["device_traces"][0]
sizes = [e["size"] for e in events if e["action"] == "alloc"]
print("found", any({wanted} <= size < {wanted} + 512 for size in sizes), sizes)
""")
    run = tonnage(MAIN, [str(tmp_path / "svd.py")], "--gpu=rtx3060", "--no-detail")
    assert "found True" in run.stdout, run.explain()
