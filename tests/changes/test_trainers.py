# SPDX-License-Identifier: Apache-2.0
"""Changes under trainers: transformers' Trainer, Lightning, and models of transformers in a loop of one's own."""

import json

import pytest
from conftest import MIB

TEXTS = """
    import torch
    from torch.utils.data import Dataset
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    class Texts(Dataset):
        def __init__(self, count, length):
            self.count, self.length = count, length

        def __len__(self):
            return self.count

        def __getitem__(self, index):
            tokens = torch.zeros(self.length, dtype=torch.int64)
            return {"input_ids": tokens, "labels": tokens}

"""
TRAINER = TEXTS + """
    config = LlamaConfig(hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=8,
                         vocab_size=1000)
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=16,
        max_steps=2,
        save_strategy="no",
        report_to="none",
    )
    trainer = Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=Texts(32, 256))
    trainer.train()
    print("steps", trainer.state.global_step)
"""
# What a layer of 16 x 256 tokens keeps is more than 10 tensors of 8 MiB and 3 of 32 MiB.
LAYER = 176 * MIB


@pytest.mark.parametrize(
    "change, saved, results",
    [
        ("accumulate=4", 6 * LAYER * 3 // 4 * 0.8, "same_up_to_rounding"),
        ("batch=4", 6 * LAYER * 3 // 4 * 0.8, "different_training"),
        ("checkpoint", 4 * LAYER, "same_up_to_rounding"),
        ("autocast=bf16", 6 * LAYER // 4, "different_training"),
    ],
)
def test_trainer_of_transformers(saves, change, saved, results):
    before, after, entry = saves(TRAINER, change)
    assert before.allocated - after.allocated >= saved
    assert entry["results"] == results and entry["arguments"]
    assert "steps 2" in after.stdout


EVALUATION = TEXTS + """
    config = LlamaConfig(vocab_size=8192, hidden_size=64, intermediate_size=64, num_hidden_layers=1,
                         num_attention_heads=2, num_key_value_heads=2)
    arguments = TrainingArguments(output_dir="out", per_device_eval_batch_size=8, report_to="none")
    trainer = Trainer(model=LlamaForCausalLM(config), args=arguments, eval_dataset=Texts(64, 128),
                      compute_metrics=lambda prediction: {"shape": list(prediction.predictions.shape)})
    print(trainer.evaluate()["eval_shape"])
"""
LOGITS = 8 * 128 * 8192 * 4  # of a batch


def test_evaluation_of_transformers_moves_its_outputs(saves):
    """Of the eight batches' logits seven are on the host when the last one's are made."""
    before, after, entry = saves(EVALUATION, "eval_accumulation")
    assert before.allocated - after.allocated >= 5 * LOGITS
    assert entry["results"] == "same" and entry["arguments"] == {"eval_accumulation_steps": 1}
    assert "[64, 128, 8192]" in after.stdout


def test_trainer_of_transformers_offloads_activations(virtual, unchanged):
    before, after = unchanged(TRAINER), virtual(TRAINER, "offload_activations")
    assert before.allocated - after.allocated >= 4 * LAYER
    assert after.change("offload_activations")["how"]


MODEL = """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=8,
                         vocab_size=1000)
    model = LlamaForCausalLM(config).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(3):
        tokens = torch.zeros(16, 256, dtype=torch.int64, device="cuda")
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done")
"""


@pytest.mark.parametrize("change", ["checkpoint", "checkpoint=2"])
def test_model_of_transformers_is_checkpointed(saves, change):
    before, after, entry = saves(MODEL, change)
    assert before.allocated - after.allocated >= (4 if change == "checkpoint" else 2) * LAYER


LIGHTNING = """
    import lightning, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)))

        def training_step(self, batch, index):
            return self.network(batch[0]).square().mean()

        def validation_step(self, batch, index):
            self.log("valid", self.network(batch[0]).square().mean())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = TensorDataset(torch.zeros(4096, 1024))
    trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False)
    trainer.fit(Module(), DataLoader(data, batch_size=2048, shuffle=True), DataLoader(data, batch_size=128))
    print("updates", trainer.global_step)
"""
# The inputs of Linear and of GELU, 8 MiB each.
PAIR = 16 * MIB


@pytest.mark.parametrize(
    "change, saved",
    [("accumulate=4", 4 * PAIR), ("batch=512", 4 * PAIR), ("checkpoint=2", 1.5 * PAIR), ("autocast=bf16", PAIR)],
)
def test_lightning(saves, change, saved):
    before, after, entry = saves(LIGHTNING, change)
    assert before.allocated - after.allocated >= saved
    assert f"updates {8 if change.startswith('batch') else 2}" in after.stdout
    # the loader of the validation is left alone
    assert all("128" not in place["what"] for place in entry["places"])


def test_lightning_releases_gradients_after_the_update(virtual):
    program = LIGHTNING.replace("4096", "2048").replace("=2048", "=512")
    before, after = virtual(program), virtual(program, "zero_grad")
    after.change("zero_grad")
    assert before.allocated - after.allocated >= 20 * MIB  # of 32 MiB that lived through forward


FABRIC = """
    import json, lightning, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    seen = []
    fabric = lightning.Fabric(accelerator="auto", devices=1)
    model = nn.Sequential(nn.Linear(16, 32, dtype=torch.float64), nn.Tanh(), nn.Linear(32, 4, dtype=torch.float64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: seen.append([each.grad.abs().sum().item() for each in model.parameters()]))
    model, optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(DataLoader(TensorDataset(torch.randn(48, 16, dtype=torch.float64)), batch_size=16))
    for (x,) in loader:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        fabric.backward(loss)
        optimizer.step()
    print(json.dumps(seen))
"""
ZEROES_BEHIND = FABRIC.replace("        optimizer.zero_grad()\n", "").replace("optimizer.step()\n    print", "optimizer.step()\n        optimizer.zero_grad()\n    print")


@pytest.mark.parametrize("program", [FABRIC, ZEROES_BEHIND], ids=["zeroes in front", "zeroes behind"])
def test_a_loop_under_fabric_is_the_programs_own(on_cpu, program):
    assert program.count("zero_grad") == 1
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    entry = after.change("accumulate")
    one, two = json.loads(before.stdout), json.loads(after.stdout)
    assert entry["effective"] and len(one) == len(two) == 3
    for a, b in zip(one, two):
        assert b == pytest.approx(a, rel=1e-9)
    assert on_cpu(program, patch=entry["patch"]).stdout == after.stdout


def test_accelerate_goes_through_the_same_loop(virtual):
    program = """
        import torch
        from accelerate import Accelerator
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        accelerator = Accelerator()
        model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8)))
        optimizer = torch.optim.AdamW(model.parameters())
        loader = DataLoader(TensorDataset(torch.zeros(8192, 1024)), batch_size=4096, shuffle=True)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        updates = 0
        for (x,) in loader:
            loss = model(x).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            updates += all(p.grad is None for p in model.parameters())
        print("updates", updates)
    """
    before, after = virtual(program), virtual(program, "accumulate=4")
    assert before.stdout == after.stdout == "updates 2\n"
    assert before.allocated - after.allocated >= 8 * 10 * MIB


@pytest.mark.parametrize("every", [4, 3])
def test_accelerate_counts_batches_by_itself(virtual, every):
    """accelerator.accumulate() counts calls, not turns of the loop: an update still comes after as many whole batches, in the patch, too."""
    program = f"""
        import torch
        from accelerate import Accelerator
        from torch.utils.data import DataLoader, TensorDataset

        def cycle(loader):
            while True:
                yield from loader

        accelerator = Accelerator(gradient_accumulation_steps={every})
        model, samples = torch.nn.Linear(64, 8), []
        optimizer = torch.optim.AdamW(model.parameters())
        optimizer.register_step_pre_hook(lambda *_: print(sum(samples)))
        loader = cycle(DataLoader(TensorDataset(torch.randn(256, 64)), batch_size=8))
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for i in range(24):
            with accelerator.accumulate(model):
                x, = next(loader)
                samples.append(len(x))
                accelerator.backward(model(x.cuda()).square().mean())
                accelerator.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                optimizer.zero_grad()
    """
    before, after = virtual(program), virtual(program, "accumulate=2")
    entry = after.change("accumulate")
    assert before.stdout.split() == [str(8 * each) for each in range(every, 25, every)]
    assert after.stdout == before.stdout and entry["results"] == "same_up_to_rounding", entry
    assert virtual(program, patch=entry["patch"]).stdout == before.stdout


IN_EVAL = MODEL.replace("    optimizer = torch", "%s\n    optimizer = torch") % """
    model = model.eval()  # the line that from_pretrained ends with
    model.gradient_checkpointing_enable()
""".rstrip()
LEFT = IN_EVAL.replace("model = model.eval()", "torch.nn.Module.train(model, False)")


def test_a_model_left_in_eval_is_put_into_train(saves):
    """Its checkpointing is configured, and works in train() only; without dropout nothing else changes."""
    before, after, entry = saves(LEFT, "train_mode")
    assert before.allocated - after.allocated >= 4 * LAYER
    assert entry["results"] == "same_up_to_rounding" and "model.train()" in entry["patch"]


def test_a_model_that_the_program_puts_into_eval_stays_there(virtual, unchanged):
    """It may mean it: batch normalisation is frozen so."""
    before, after = unchanged(IN_EVAL), virtual(IN_EVAL, "train_mode")
    assert after.allocated == before.allocated
    assert not any(entry["applied"] for entry in after.document["changes"])


def test_dropout_makes_it_another_training(virtual):
    after = virtual(LEFT.replace("vocab_size=1000", "vocab_size=1000, attention_dropout=0.1"), "train_mode")
    assert after.change("train_mode")["results"] == "different_training"
