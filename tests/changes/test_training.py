# SPDX-License-Identifier: Apache-2.0
"""Changes of how a training step works: what they save is what theory says, and the patch saves the same."""

import json

import pytest
from conftest import MIB

LAYERS = """
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)

        def forward(self, x):
            return x + self.down(nn.functional.gelu(self.up(x)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(8))

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    model = Net().cuda()
    optimizer = torch.optim.%s
    for step in range(3):
        x = torch.randn(4096, 512, device="cuda")
        y = model(x)
        loss = nn.functional.mse_loss(y, x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done")
"""
ADAM = LAYERS % "AdamW(model.parameters(), lr=1e-3)"
# A block keeps its input (8 MiB) and the inputs and outputs of gelu (32 MiB each); parameters are 8 x 8 MiB.
BLOCK = 64 * MIB
PARAMETERS = 8 * 8 * MIB


def test_checkpointed_blocks_keep_their_inputs_only(saves):
    before, after, entry = saves(ADAM, "checkpoint")
    assert before.allocated - after.allocated >= 6 * BLOCK  # one block's are there while it is computed again
    assert entry["results"] == "same_up_to_rounding"
    assert [place["module"] for place in entry["places"]] == [f"blocks.{n}" for n in range(8)]


def test_a_trainer_that_keeps_its_last_output_beside_its_model(on_cpu):
    """As KAIR's ModelPlain: the statement that calls the model names a tensor, too, and the model is first called to evaluate."""
    program = ADAM.replace(".cuda()", "").replace(', device="cuda"', "").replace("4096, 512", "16, 512").replace("512", "32").replace("2048", "64") + """
    class Trainer:
        def run(self):
            self.out = self.net(self.x)

    trainer = Trainer()
    trainer.net, trainer.x = Net(), torch.randn(4, 32)
    with torch.no_grad():
        trainer.run()
    trainer.run()
    trainer.out.sum().backward()
    """
    entry = on_cpu(program, "checkpoint").change("checkpoint")
    assert entry["applied"] and entry["effective"] == 16, entry


def test_every_second_block_keeps_half(saves):
    before, after, entry = saves(ADAM, "checkpoint=2")
    assert 3 * BLOCK <= before.allocated - after.allocated <= 4 * BLOCK
    assert entry["effective"] == 4


def test_offloaded_activations(saves):
    before, after, entry = saves(ADAM, "offload_activations")
    assert before.allocated - after.allocated >= 6 * BLOCK
    assert entry["results"] == "same"


@pytest.mark.parametrize("backward", [
    "if half:\n            optimizer.backward(loss)\n        else:\n            loss.backward()",
    "if half:\n            with scale(loss, optimizer) as scaled:\n                scaled.backward()\n        else:\n            loss.backward()",
    "with scale(loss, optimizer) as scaled:\n            scaled.backward()",
])  # fmt: skip
def test_the_pass_is_started_in_a_branch_behind_the_loss(saves, backward):
    """As with apex: its optimizer goes backward, or what is differentiated is made by a context."""
    program = ADAM.replace("        loss.backward()", "        " + backward).replace(
        "    model = Net()", "    import contextlib\n    half = False\n\n    @contextlib.contextmanager\n"
                            "    def scale(loss, optimizer):\n        yield loss\n\n    model = Net()")  # fmt: skip
    before, after, entry = saves(program, "offload_activations")
    assert before.allocated - after.allocated >= 6 * BLOCK


def test_autocast_halves_activations(saves):
    before, after, entry = saves(ADAM, "autocast=bf16")
    # half of 8 blocks' inner activations, less the copies of the weights
    assert before.allocated - after.allocated >= 8 * BLOCK // 2 - PARAMETERS
    assert entry["results"] == "different_training"


@pytest.mark.parametrize("text", ["nn.functional.mse_loss(model(x), x).backward()", "(model(x) - x).square().mean().backward()"])
def test_autocast_where_the_loss_is_made_as_it_is_differentiated(saves, text):
    three = ADAM[ADAM.index("        y = model(x)"):ADAM.index("        optimizer.step()")]
    before, after, entry = saves(ADAM.replace(three, "        %s\n" % text), "autocast=bf16")
    assert before.allocated - after.allocated >= 8 * BLOCK // 2 - PARAMETERS
    assert "loss.backward()" in entry["patch"]


@pytest.mark.parametrize("device", ["torch.accelerator.current_accelerator() or torch.device(\"cpu\")", "torch.device(os.environ[\"D\"])"])
def test_autocast_finds_the_card_however_it_is_named(saves, monkeypatch, device):
    """A text that names the CPU only, as many that take what device there is."""
    monkeypatch.setenv("D", "cu" + "da")
    program = ADAM.replace("Net().cuda()", f"Net().to({device})").replace('device="cuda"', f"device={device}")
    program = program.replace("import torch\n", "import os\n    import torch\n    host = torch.zeros(1, device=\"cpu\")\n", 1)
    assert "cuda" not in program
    before, after, entry = saves(program, "autocast=bf16")
    assert before.allocated - after.allocated >= 8 * BLOCK // 2 - PARAMETERS
    assert 'torch.autocast("cuda"' in entry["patch"]


def test_autocast_with_float16_brings_a_gradient_scaler(saves):
    before, after, entry = saves(ADAM, "autocast=fp16")
    assert before.allocated - after.allocated >= 8 * BLOCK // 2 - PARAMETERS
    assert "GradScaler" in entry["patch"]


def test_autocast_that_is_there_is_switched_on(saves):
    switched_off = "with torch.autocast('cuda', dtype=torch.float16, enabled=bool(0)):"
    program = ADAM.replace("        y = model(x)\n", f"        {switched_off}\n            y = model(x)\n")
    before, after, entry = saves(program, "autocast=bf16")
    assert before.allocated - after.allocated >= 8 * BLOCK // 2 - PARAMETERS
    assert "dtype=torch.bfloat16, enabled=True" in entry["patch"]


def test_bf16_weights_halve_everything(saves):
    before, after, entry = saves(ADAM, "bf16_weights")
    assert after.allocated < 0.6 * before.allocated


STATE = """
    import torch
    from torch import nn

    model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(8))).cuda()
    optimizer = torch.optim.%s
    for step in range(3):
        loss = model(torch.randn(16, 1024, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done")
"""
MODEL = 8 * 4 * MIB  # parameters, gradients, each moment
ADAMW = STATE % "AdamW(model.parameters(), lr=1e-3)"


@pytest.mark.parametrize(
    "change, program, saved",
    [
        ("foreach", ADAMW, 0.6),  # the temporary copy of all parameters, less those of one
        ("fused", ADAMW, 0.9),
        ("step_in_backward", ADAMW, 1.0),  # those, and all gradients but two
        ("adafactor", ADAMW, 1.0),
        ("adam8bit", ADAMW, 2.0),
        ("offload_optimizer", ADAMW, 2.5),
        ("sgd_no_momentum", STATE % "SGD(model.parameters(), lr=1e-3, momentum=0.9)", 0.9),
    ],
)
def test_optimizers_with_less(saves, change, program, saved):
    # there is no bitsandbytes to run the patch with
    before, after, entry = saves(program, change, patched=change != "adam8bit")
    assert before.allocated - after.allocated >= saved * MODEL
    if change == "adam8bit":
        assert "bitsandbytes is not installed" in entry["how"]


DDP = """
    import os, torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    model = DistributedDataParallel(nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(8))).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(3):
        model(torch.randn(16, 2048, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.distributed.destroy_process_group()
    print("done")
"""


def test_gradients_in_the_buckets(saves):
    before, after, _ = saves(DDP, "bucket_view")
    assert before.allocated - after.allocated >= 0.8 * 8 * 16 * MIB  # of the size of the parameters


def test_the_state_is_sharded_over_the_ranks(virtual):
    """Here there is one rank, which keeps all of it: what is saved with two, tests/vgpu/test_fix_ranks.py counts."""
    before, after = virtual(DDP), virtual(DDP, "shard_state")
    entry = after.change("shard_state")
    assert entry["results"] == "same" and "ZeroRedundancyOptimizer(model.parameters(), lr=1e-3" in entry["patch"]
    assert "optimizer_class=torch.optim.SGD" in entry["patch"] and after.report["steps"]["seen"] == 3
    assert virtual(DDP, patch=entry["patch"]).peaks == after.peaks
    assert after.allocated <= before.allocated


def test_a_state_that_is_saved_or_sharded_already_is_left_alone(virtual):
    """Every rank would have to gather it first; without DistributedDataParallel there is nothing to shard over."""
    saved = DDP.replace('print("done")', "optimizer.state_dict()")
    other = LATE_STATE % "torch.optim.SGD(model.parameters(), lr=1e-3)"
    own = DDP.replace("torch.optim.SGD(model.parameters(), lr=1e-3)",
                      "torch.distributed.optim.ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=1e-3)")  # fmt: skip
    own = own.replace("import os, torch", "import os, torch.distributed.optim")
    for program, why in ((saved, "has to be gathered first"), (own, "nothing in this program"), (other, "nothing in this program")):
        entry = next(entry for entry in virtual(program, "shard_state").document["changes"] if entry["id"] == "shard_state")
        assert not entry["applied"] and why in entry["why_not"] and entry["patch"] is None, entry


LATE_STATE = """
    import torch

    model = torch.nn.Linear(64, 64).cuda()
    optimizer = %s
    for step in range(2):
        model(torch.randn(16, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


GRADIENTS = """
    import json, torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(8, 16), nn.Linear(16, 8)
            self.norm, self.drop = %s, nn.Dropout(0.3)

        def forward(self, x):
            return x + self.drop(self.two(torch.tanh(self.one(self.norm(x)))))

    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(*(Block() for _ in range(4))), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for step in range(3):
        x = torch.randn(16, 4)
        loss = model(x).square().mean()
        loss.backward()
        seen.append([p.grad.abs().sum().item() for p in model.parameters()])
        seen.append([b.double().sum().item() for n, b in model.named_buffers() if "running" in n])
        optimizer.step()
        optimizer.zero_grad()
    print(json.dumps(seen))
"""


@pytest.mark.parametrize("norm", ["nn.Identity()", "nn.LayerNorm(8)", "nn.BatchNorm1d(8)"])
def test_checkpointing_keeps_gradients_and_running_statistics(on_cpu, norm):
    program = GRADIENTS % norm
    before, after = on_cpu(program), on_cpu(program, "checkpoint")
    entry = after.change("checkpoint")
    assert entry["effective"] == 4
    patched = on_cpu(program, patch=entry["patch"])
    for other in (after, patched):
        for a, b in zip(json.loads(before.stdout), json.loads(other.stdout)):
            assert b == pytest.approx(a, rel=1e-12)


def test_checkpointing_that_moves_a_buffer_twice_says_so(on_cpu):
    moving = "Moving()"
    program = GRADIENTS.replace("    class Block", """    class Moving(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(8))

        def forward(self, x):
            self.mean.data.lerp_(x.detach().mean(0), 0.1)
            return x - self.mean

    class Block""") % moving
    entry = on_cpu(program, "checkpoint").change("checkpoint")
    assert entry["effective"] == 4 and entry["results"] == "different_training"


MOVES = {
    "a function that is given them": """
    def turn(held):
        with torch.no_grad():
            held[0][:] = held[0] * 0.5 + 1

    class Moving(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("u0", torch.zeros(8))

        @property
        def u(self):
            return [self.u0]

        def forward(self, x):
            turn(self.u)
            return x * self.u0
""",
    "torch's function": """
    class Moving(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("stored_mean", torch.zeros(8))
            self.register_buffer("stored_var", torch.ones(8))

        def forward(self, x):
            return nn.functional.batch_norm(x, self.stored_mean, self.stored_var, None, None, self.training, 0.1)
""",
    "torch's spectral norm": """
    def Moving():
        return nn.utils.spectral_norm(nn.Linear(8, 8))
""",
}  # fmt: skip


@pytest.mark.parametrize("by", list(MOVES))
def test_buffers_that_something_else_moves_are_seen(on_cpu, by):
    """As BigGAN's power iterations and its own batch norm."""
    program = GRADIENTS.replace("    class Block", MOVES[by].lstrip("\n") + "\n    class Block") % "Moving()"
    for change, effective in (("checkpoint", 4), ("accumulate=2", None)):
        entry = on_cpu(program, change).document["changes"][0]
        assert entry["results"] == "different_training" and (effective is None or entry["effective"] == effective), (change, entry)


def test_a_buffer_that_the_first_call_sets_up_moves_nothing(on_cpu):
    program = GRADIENTS.replace("    class Block", """    class Moving(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("shift", torch.zeros(8))
            self.ready = False

        def set_up(self, x, into):
            into["shift"].copy_(x.detach().mean(0))

        def forward(self, x):
            if not self.ready:
                self.set_up(x, self._buffers)
                self.ready = True
            return x - self.shift

    class Block""") % "Moving()"
    entry = on_cpu(program, "checkpoint").change("checkpoint")
    assert entry["effective"] == 4 and entry["results"] == "same_up_to_rounding", entry


def test_only_the_blocks_of_a_sequential_that_holds_more_are_checkpointed(on_cpu):
    """As a ResNet's children in one Sequential: an activation in place would change what a block in front of it has to keep."""
    program = (GRADIENTS % "nn.LayerNorm(8)").replace("nn.Sequential(*(Block() for _ in range(4)))",
                                                      "nn.ReLU(inplace=True), *(Block() for _ in range(4))")  # fmt: skip
    assert "inplace" in program
    before, after = on_cpu(program), on_cpu(program, "checkpoint")
    entry = after.change("checkpoint")
    assert entry["effective"] == 4
    patched = on_cpu(program, patch=entry["patch"])
    assert before.stdout == after.stdout == patched.stdout


STAGES = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)
            self.layer1, self.layer2, self.layer3, self.layer4 = (nn.Sequential(*(Block() for _ in range(n))) for n in (3, 4, 6, 3))
            for block in self.layer4:
                block.one, block.two = nn.Linear(8, 200), nn.Linear(200, 8)  # the last stage has most parameters

        def forward(self, x):
            return self.last(self.layer4(self.layer3(self.layer2(self.layer1(self.first(x))))))

    model = Model()
"""


def test_of_a_resnet_all_blocks_are_checkpointed(on_cpu):
    """The first and the last stage of a ResNet-50 are of one kind, and hold most of its parameters: they are not its blocks."""
    program = GRADIENTS % "nn.LayerNorm(8)"
    start = program.index("    model = nn.Sequential")
    program = program[:start] + STAGES.strip("\n") + program[program.index("\n", start):]
    assert on_cpu(program, "checkpoint").change("checkpoint")["effective"] == 16


def test_an_optimizer_of_the_programs_own_is_made_where_it_is_called(on_cpu):
    program = GRADIENTS % "nn.LayerNorm(8)"
    made = next(line for line in program.split("\n") if "torch.optim." in line)
    own = made[:len(made) - len(made.lstrip())]
    lines = ["class Own(torch.optim.SGD):", "    def __init__(self, params):", "        super().__init__(params, 0.1)"]
    changed = program.replace(made, "\n".join(own + line for line in [*lines, made.split("=")[0].strip() + " = Own(model.parameters())"]))
    entry = on_cpu(changed, "checkpoint").change("checkpoint")
    assert entry["effective"] == 4 and "Own(model.parameters())" in entry["patch"].split("block.forward")[-1], entry["patch"]
    assert on_cpu(changed).stdout == on_cpu(changed, patch=entry["patch"]).stdout


def test_a_model_that_is_traced_is_not_checkpointed_meanwhile(on_cpu):
    program = GRADIENTS % "nn.LayerNorm(8)"
    made = next(line for line in program.split("\n") if "torch.optim." in line)
    traced = program.replace(made, made + "\n" + made[:len(made) - len(made.lstrip())] + "torch.jit.trace(model, torch.ones(2, 4))")
    entry = on_cpu(traced, "checkpoint").change("checkpoint")
    assert entry["effective"] == 4 and "is_tracing" in entry["patch"]
    assert "is_tracing" not in on_cpu(program, "checkpoint").change("checkpoint")["patch"]
    before, patched = on_cpu(traced), on_cpu(traced, patch=entry["patch"])
    assert before.stdout == patched.stdout and patched.status == 0, patched.stderr


NUMBERED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)
            self.heads = [Block() for _ in range(4)]
            for number, head in enumerate(self.heads):
                self.add_module("head_%d" % number, head)

        def forward(self, x):
            x = self.first(x)
            return self.last(sum(head(x) for head in self.heads))

    model = Model()
"""


def test_blocks_that_are_numbered_attributes_are_checkpointed(on_cpu):
    program = GRADIENTS % "nn.LayerNorm(8)"
    start = program.index("    model = nn.Sequential")
    program = program[:start] + NUMBERED.strip("\n") + program[program.index("\n", start):]
    before, after = on_cpu(program), on_cpu(program, "checkpoint")
    entry = after.change("checkpoint")
    assert entry["effective"] == 4
    patched = on_cpu(program, patch=entry["patch"])
    assert before.stdout == after.stdout == patched.stdout


SHARED = """
    class Dense(nn.Module):
        def __init__(self, inner, outer):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(outer, inner) / 8)

        def forward(self, x):
            return torch.tanh(x @ self.weight.T)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([Dense(8, 8), Dense(8, 8)])

        def forward(self, x):
            for part in self.parts:
                x = part(x)
            return x

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.layers = nn.Linear(4, 8), nn.ModuleList(Layer() for _ in range(3))
            self.head = nn.ModuleList([Dense(8, 9), Dense(9, 8)])

        def forward(self, x):
            for part in [self.first, *self.layers, *self.head]:
                x = part(x)
            return x

    model = Model()
"""


def test_blocks_are_those_around_a_layer_that_a_head_has_too(on_cpu):
    """The layers of all blocks and of the head outweigh the blocks; each block is checkpointed as a whole."""
    program = GRADIENTS % "nn.LayerNorm(8)"
    start = program.index("    model = nn.Sequential")
    program = program[:start] + SHARED.strip("\n") + program[program.index("\n", start):]
    before, after = on_cpu(program), on_cpu(program, "checkpoint")
    entry = after.change("checkpoint")
    assert [place["module"] for place in entry["places"]] == ["layers.%d" % number for number in range(3)]
    assert before.stdout == after.stdout


SCHEDULED = """
    import torch
    from torch import nn

    model = nn.Linear(6, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    for _ in range(3):
        loss = model(torch.randn(16, 6)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print("done")
"""


@pytest.mark.parametrize("name", ["offload_optimizer", "step_in_backward"])
def test_schedulers_wrap_the_step_of_an_optimizer_that_works_elsewhere(on_cpu, name):
    entry = on_cpu(SCHEDULED, name).change(name)
    assert on_cpu(SCHEDULED, patch=entry["patch"]).stdout == "done\n"


SEVERAL_MODELS = """
    import collections
    import torch
    from torch import nn

    calls = collections.Counter()

    class Block(nn.Module):
        def __init__(self, of):
            super().__init__()
            self.of, self.layer = of, nn.Linear(8, 8)

        def forward(self, x):
            calls[self.of] += 1
            return x + torch.tanh(self.layer(x))

    def made(of):
        return nn.Sequential(*(Block(of) for _ in range(3)))

    class Solver(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = made("first"), made("second")
            self.optimizers = []
            for name in ("first", "second"):
                for group in range(1):
                    self.optimizers.append(torch.optim.SGD(getattr(self, name).parameters(), lr=0.1))

        def train_step(self, x):
            for part, optimizer in zip((self.first, self.second), self.optimizers):
                part(x).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()

    hidden = {}
    %s
    for step in range(2):
        solver.train_step(torch.ones(4, 8))
    print(sorted(calls.items()))
"""


def test_checkpointing_of_several_models_is_patched_for_all_of_them_and_once(on_cpu):
    """Their optimizers are made in a loop: a block that is wrapped in each of its rounds would be computed again twice as often."""
    program = SEVERAL_MODELS % "solver = Solver()"
    after = on_cpu(program, "checkpoint")
    assert after.stdout == "[('first', 12), ('second', 12)]\n" and after.change("checkpoint")["effective"] == 6
    patch = after.change("checkpoint")["patch"]
    assert on_cpu(program, patch=patch).stdout == after.stdout and patch.count("import torch.utils.checkpoint") == 1


def test_checkpointing_of_a_model_that_has_no_name_has_no_patch(on_cpu):
    """A patch for the other model alone is not what was tried."""
    program = SEVERAL_MODELS % """
    solver = Solver()
    hidden["third"] = made("third")
    kept = Solver.train_step
    def train_step(self, x):
        kept(self, x)
        hidden["third"](x).square().mean().backward()
    Solver.train_step = train_step""".strip()
    entry = on_cpu(program, "checkpoint").change("checkpoint")
    assert entry["effective"] == 9 and entry["patch"] is None


def test_checkpointing_of_models_that_a_loop_attaches_has_no_patch(on_cpu):
    """In front of the loop they are not there, and in it not all of them."""
    program = SEVERAL_MODELS % "solver = Solver()"
    program = program.replace("self.first, self.second = made(\"first\"), made(\"second\")\n", "pass\n")
    start, end = program.index("                for group"), program.index("        def train_step")
    program = program[:start] + """
                setattr(self, name, made(name))
                self.optimizers.append(torch.optim.SGD(getattr(self, name).parameters(), lr=0.1))

""".lstrip("\n") + program[end:]
    entry = on_cpu(program, "checkpoint").change("checkpoint")
    assert entry["effective"] == 6 and entry["patch"] is None, entry["patch"]


def test_checkpointing_stands_where_the_model_is_there(on_cpu):
    """The statement that makes the first optimizer names `self`, too, which has no second model yet."""
    program = SEVERAL_MODELS % "solver = Solver()"
    start, end = program.index("            self.first, self.second"), program.index("        def train_step")
    program = program[:start] + """
            self.first = made("first")
            self.optimizers = [torch.optim.SGD(self.first.parameters(), lr=0.1)]
            self.second = made("second")
            self.optimizers.append(torch.optim.SGD(self.second.parameters(), lr=0.1))

""".lstrip("\n") + program[end:]
    after = on_cpu(program, "checkpoint")
    assert after.stdout == "[('first', 12), ('second', 12)]\n"
    assert on_cpu(program, patch=after.change("checkpoint")["patch"]).stdout == after.stdout


def test_checkpointing_of_models_that_are_made_in_a_loop_stays_there(on_cpu):
    program = SEVERAL_MODELS[:SEVERAL_MODELS.index("    class Solver")] + """
    for fold in range(2):
        model = made("fold %d" % fold)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            model(torch.ones(4, 8)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    print(sorted(calls.items()))
"""
    after = on_cpu(program, "checkpoint")
    assert after.stdout == "[('fold 0', 12), ('fold 1', 12)]\n"
    assert on_cpu(program, patch=after.change("checkpoint")["patch"]).stdout == after.stdout
