"""Says when torch's compiler is imported: a record of memory is taken after a caught out-of-memory and at the end, and
in between the program itself asks for the compiler, when it is called with a word."""

import sys

import torch


class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("torch._inductor", "sympy"):
            print("import", name, flush=True)


def train():
    model = torch.nn.Linear(1000, 1000).cuda()
    for _ in range(3):
        model(torch.randn(100, 1000, device="cuda")).sum().backward()


sys.meta_path.insert(0, Watch())
train()
try:
    torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    print("caught")
if sys.argv[1:]:
    print(torch._inductor.__name__)
    train()
print("end", flush=True)
