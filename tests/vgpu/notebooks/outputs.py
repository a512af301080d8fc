# %%
import torch
x = torch.ones(16 << 20, device="cuda")
# %%
x * 2
# %%
x + 1;
# %%
%%capture shown
y = torch.zeros(8 << 20, device="cuda")
x - 3
# %%
del x, y
# %%
print(torch.cuda.memory_allocated())
