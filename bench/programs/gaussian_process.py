# SPDX-License-Identifier: Apache-2.0
"""gpytorch: an exact Gaussian process by Cholesky on 8,000 points in double precision."""

import gpytorch
import torch

points = torch.rand(8000, 8, dtype=torch.float64, device="cuda")
values = torch.sin(points.sum(-1))


class Model(gpytorch.models.ExactGP):
    def __init__(self, likelihood):
        super().__init__(points, values, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=8))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Model(likelihood).double().cuda()
likelihood.cuda()
model.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
with gpytorch.settings.max_cholesky_size(100_000):
    for step in range(6):
        optimizer.zero_grad()
        loss = -marginal(model(points), values)
        loss.backward()
        optimizer.step()
        print(step, loss.item(), flush=True)
