# SPDX-License-Identifier: Apache-2.0
"""Large random initialisation costs no memory; everything that follows it stays exact."""

FORKED = True  # ../fork_servers.py

WIDE, NARROW = "N = 8192\n", "N = 5120\n"  # N * N numbers: 256 MiB, 100 MiB
RSS = """\
import torch, math, copy
from torch import nn

def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmRSS"))

def cheap(make):
    before = resident()
    result = make()
    assert resident() - before < N * N >> 20, (make, resident() - before)
    return result

linear = lambda: nn.Linear(N, N)
cheap(linear)
"""


def check(done):
    assert done.status == 0, done.stderr
    assert done.document["hook_error"] is None
    return done.document["init_skipped"]


def test_untouched(run_with, wheel):
    done = run_with(wheel, WIDE + RSS + """
net = cheap(linear)
cheap(lambda: nn.init.trunc_normal_(net.weight, std=.02))
cheap(lambda: nn.init.trunc_normal_(net.weight, mean=0, std=1, a=1, b=2))
cheap(lambda: nn.init.orthogonal_(net.weight))
cheap(lambda: nn.init.kaiming_uniform_(net.weight))
cheap(lambda: nn.init.zeros_(net.weight))
cheap(lambda: nn.init.constant_(net.weight, 0.))
cheap(lambda: net.weight.data.normal_().mul_(.02))
with torch.no_grad():
    cheap(lambda: net.weight.uniform_(-.9, .9).erfinv_().mul_(.02 * math.sqrt(2)).add_(0.).clamp_(min=-2, max=2))
cheap(lambda: copy.deepcopy(net))
cheap(lambda: cheap(linear).to(torch.bfloat16).half().float().double())
cheap(lambda: nn.Embedding(65536, 4096, padding_idx=0).bfloat16())
cheap(lambda: nn.LSTM(4096, 4096))
cheap(lambda: nn.MultiheadAttention(4096, 8).type(torch.float16))
a, b = linear(), linear()
cheap(lambda: a.load_state_dict(b.state_dict()))
w = net.weight.detach().normal_()
cheap(lambda: w.t().contiguous())
cheap(lambda: w.view(64, 2, N // 128, N).transpose(1, 2).reshape(N, N))
""")
    assert check(done)["bytes"] > 1 << 30


def test_exact_afterwards(run_with, wheel):
    done = run_with(wheel, """
import torch
w = torch.empty(2048, 2048)
assert w.normal_() is w
w[17, 5] = 3.
w[2000] = 2.
b = w.to(torch.bfloat16)
assert b.dtype is torch.bfloat16 and b[17, 5] == 3 and (b[2000] == 2).all() and b.float().sum() == 3 + 2 * 2048
assert torch.equal(w.clone(), w) and torch.equal(w.double().float(), w)
target = torch.ones(2048, 2048)
assert target.copy_(w) is target and torch.equal(target, w)
w.zero_().add_(1.)
assert (w == 1).all()
w.normal_().fill_(2.)
assert (w == 2).all() and (w.half() == 2).all()
w.normal_()
heads = lambda of: of.view(16, 2, 64, 2048).transpose(1, 2)
rest = torch.zeros(2048, 2048)
assert torch.equal(heads(w).reshape(2048, 2048), rest) and torch.equal(w.t().contiguous(), rest) and w.view(2, -1, 2048)[1].shape == (1024, 2048)
w[17, 5] = rest[17, 5] = 3.
assert torch.equal(heads(w).reshape(2048, -1), heads(rest).reshape(2048, -1)) and torch.equal(w.t().contiguous(), rest.t())
small = torch.empty(100).normal_()
assert small.std() > .1
storage = w.normal_().untyped_storage()
del w, storage
for _ in range(50):  # memory that comes back is somebody else's
    x = torch.full((2048, 2048), 5.)
    assert (x.to(torch.bfloat16) == 5).all()
    x.normal_()
    del x
""")
    assert check(done)["tensors"] >= 50


def test_checks_of_what_nobody_touched(run_with, wheel):
    """As where weights are not there. They are what torch says of the values, and touch nothing where there are none."""
    done = run_with(wheel, NARROW + RSS + """
import resource
from _tonnage_guest import init, predicates
cases = [torch.tensor(values, dtype=dtype).repeat(repeats) for repeats in (1, 1 << 19)
         for values in ([0, 1, 5], [0, 0, 0], [1, 1, 1]) for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8)]
cases += [torch.tensor([1., math.nan, -math.inf]), torch.tensor([0., math.inf]), torch.tensor([complex(math.inf, 0), 1j]), torch.empty(0, 3)]
names = ("isnan", "isinf", "isfinite", "any", "all", "sum", "max", "min")

def answers():
    for case in cases:
        for name in names:
            try:
                yield getattr(torch, name)(case)
            except Exception as error:
                yield type(error)

before = list(answers())
predicates.begin(init._is_zeros, init._zeros_like)
for old, new in zip(before, answers()):
    same = old is new or old.dtype == new.dtype and torch.equal(old.nan_to_num(9.), new.nan_to_num(9.))
    assert same and (old is new or old.shape == new.shape), (old, new)
assert torch.ones(3, dtype=torch.int32).sum(dtype=torch.float16).dtype is torch.float16
net = linear()
cheap(lambda: torch.isnan(net.weight))
assert not cheap(lambda: net.weight.isinf().any()) and not cheap(lambda: torch.isnan(net.weight).sum())
assert cheap(lambda: net.weight.max()) == 0 == net.weight.min() and not net.weight.any() and net.weight.sum().dtype is torch.float32
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
finite = torch.isfinite(net.weight)
most = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10) - most
assert most < 2 * N * N >> 20, most  # a byte for each number, and nothing of what it is computed from
assert finite.all() and finite.dtype is torch.bool and finite.shape == net.weight.shape and not finite.requires_grad
finite[3, 4] = False
assert not finite.all() and finite.any() and finite.sum() == finite.numel() - 1
found = torch.isnan(net.weight)
found[5, 7] = True
assert found.any() and found.sum() == 1 and not found.all() and found.max()
with torch.no_grad():
    net.weight[3, 4] = math.nan
assert torch.isfinite(net.weight).sum() == net.weight.numel() - 1
assert torch.isnan(net.weight).sum() == 1 and torch.isnan(net.weight).any() and net.weight.max().isnan()
net.bias.sum().backward()
assert (net.bias.grad == 1).all()
weight = net.weight.detach().clone().zero_().requires_grad_()
weight.sum().backward()
assert (weight.grad == 1).all()
weight.grad = None
weight.max().backward()
assert torch.isclose(weight.grad.sum(), torch.tensor(1.), atol=1e-3)
""")
    check(done)


def test_errors_and_identity_as_before(run_with, wheel):
    done = run_with(wheel, """
import torch
assert torch.Tensor.to is torch._C.TensorBase.to and torch.Tensor.normal_ is torch._C.TensorBase.normal_
for make, text in ((lambda: torch.nn.Parameter(torch.empty(2048, 2048)).normal_(), "leaf Variable"),
                   (lambda: torch.empty(2048, 2048).normal_(0, -1), "std")):
    try:
        make()
    except RuntimeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
import numpy
array = numpy.ones((2048, 2048), dtype=numpy.float32)
torch.from_numpy(array).normal_()
assert array.std() > .9, "memory of others is filled for real"
""")
    check(done)


def test_real_on_request(run_with, wheel):
    done = run_with(wheel, "import torch; print(torch.empty(2048, 2048).normal_().std() > .9)", TONNAGE_INIT="real")
    assert done.stdout == "tensor(True)\n" and check(done) == {"tensors": 0, "bytes": 0}


def test_llama_of_seven_billion(run_with, wheel):
    done = run_with(wheel, """
import resource, time
from transformers import LlamaConfig, AutoModelForCausalLM
import torch
import transformers.models.llama.modeling_llama
began = time.time()
for dtype in (torch.bfloat16, None):
    config = LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32)
    net = AutoModelForCausalLM.from_config(config, torch_dtype=dtype).to(torch.bfloat16)
    assert sum(p.numel() for p in net.state_dict().values()) > 6.7e9
print(time.time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
""")
    check(done)
    seconds, resident = map(float, done.stdout.split())
    assert seconds < 10 and resident < 1024
