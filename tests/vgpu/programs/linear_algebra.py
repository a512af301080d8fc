# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices and linear algebra, each once; what is refused is refused with words."""

import torch

positive = torch.eye(64, device="cuda").expand(8, 64, 64).contiguous()
right = torch.ones(8, 64, 3, device="cuda")
index = torch.arange(64)
sparse = torch.sparse_coo_tensor(torch.stack([index, index]), torch.ones(64), (64, 64), check_invariants=True).cuda()
rows = torch.eye(64).to_sparse_csr().cuda()
embedding = torch.nn.Embedding(100, 64, sparse=True).cuda()
optimizer = torch.optim.SparseAdam(embedding.parameters())


def sparse_adam():
    embedding(torch.zeros(32, dtype=torch.long, device="cuda")).sum().backward()
    optimizer.step()


WORK = {
    "batched cholesky": lambda: torch.linalg.cholesky(positive),
    "cholesky_solve": lambda: torch.cholesky_solve(right, positive),
    "batched inv": lambda: torch.linalg.inv(positive),
    "solve_triangular": lambda: torch.linalg.solve_triangular(positive, right, upper=True),
    "coo mm": lambda: torch.sparse.mm(sparse, right[0]),
    "coo add": lambda: sparse + sparse,
    "to_dense": lambda: sparse.to_dense(),
    "SparseAdam": sparse_adam,
    "cholesky": lambda: torch.linalg.cholesky(positive[0]),
    "qr": lambda: torch.linalg.qr(positive[0]),
    "svd": lambda: torch.linalg.svd(positive[0]),
    "eigh": lambda: torch.linalg.eigh(positive[0]),
    "solve": lambda: torch.linalg.solve(positive[0], right[0]),
    "svd gesvd": lambda: torch.linalg.svd(positive[0], driver="gesvd"),
    "svd gesvda": lambda: torch.linalg.svd(positive[0], driver="gesvda"),
    "batched svd": lambda: torch.linalg.svd(positive[:, :16, :16]),
    "batched eigh": lambda: torch.linalg.eigh(positive[:, :16, :16]),
    "lstsq": lambda: torch.linalg.lstsq(positive[0], right[0]),
    "ldl_solve": lambda: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(positive[0]), right[0]),
    "ormqr": lambda: torch.ormqr(*torch.geqrf(positive[0]), right[0]),
    "csr mm": lambda: rows @ right[0],
    "csr mv": lambda: rows @ right[0, :, 0].contiguous(),
    "csr transposed": lambda: rows.to_dense().mT.contiguous().to_sparse_csr() @ right[0],
    "sampled_addmm": lambda: torch.sparse.sampled_addmm(rows, positive[0], positive[1]),
    "csr csr": lambda: rows @ rows,
}

for name, work in WORK.items():
    try:
        work()
        print(name, "ran")
    except RuntimeError as error:
        print(name, "refused", "cusolver" in str(error).lower() or "cusparse" in str(error).lower())
