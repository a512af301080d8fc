# %%
import torch
# %%
def load(count):
    pictures = torch.zeros(count, 1 << 20, device="cuda")
    raise RuntimeError("bad labels")
# %% raises-exception
load(96)
# %%
more = torch.zeros(96, 1 << 20, device="cuda")
# %%
print("went on")
