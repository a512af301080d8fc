# SPDX-License-Identifier: Apache-2.0
"""The program's own options: which of those that it declares are for what, and what is offered of them."""

import ast
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python/tonnage/guest"))


def package():
    """The changes' package under its name in a program."""
    import importlib.util

    if "_tonnage_changes" not in sys.modules:
        folder = ROOT / "python/tonnage/changes"
        spec = importlib.util.spec_from_file_location("_tonnage_changes", folder / "__init__.py",
                                                      submodule_search_locations=[str(folder)])  # fmt: skip
        module = sys.modules["_tonnage_changes"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    from _tonnage_changes import meaning, options

    return meaning, options


def option(name, value, kind=None, choices=None, typed=None):
    options = package()[1]
    kind = kind or ("flag" if isinstance(value, bool) else type(value).__name__)
    return options.Option(name.lstrip("-").replace("-", "_"), (name,), typed, kind, False, choices, value)


@pytest.mark.parametrize("name, value, role", [
    ("--batch-size", 8, "batch"), ("--per_device_train_batch_size", 8, "batch"), ("--micro-batch", 8, "batch"),
    ("--bs", 8, "batch"), ("--batchSize", 8, "batch"), ("--device-batch-size", 8, "batch"), ("--microbatch", -1, "batch"),
    ("--total_batch_size", 8, "total"), ("--global-batch-size", 8, "total"),
    ("--per_device_eval_batch_size", 8, None), ("--val-batch-size", 8, None), ("--validation-batch-size", 8, None),
    ("--test-batch-size", 8, None), ("--num-batches", 8, None), ("--train-batches-per-epoch", 8, None),
    ("--gradient_accumulation_steps", 1, "accumulation"), ("--accum-iter", 1, "accumulation"),
    ("--accumulate_grad_batches", 1, "accumulation"), ("--eval_accumulation_steps", 1, None),
    ("--gradient_checkpointing", False, "checkpointing"), ("--grad-checkpointing", False, "checkpointing"),
    ("--use_checkpoint", False, "checkpointing"), ("--activation-checkpointing", False, "checkpointing"),
    ("--checkpoint-hist", 10, None), ("--save-checkpoint", False, None), ("--checkpoint_every", 10, None),
    ("--amp", False, "precision"), ("--bf16", False, "precision"), ("--bf16_full_eval", False, None),
    ("--optim", "adamw_torch", "optimizer"), ("--optimizer-state-path", "x", None),
    ("--block_size", 1024, "length"), ("--max_seq_length", 512, "length"), ("--bptt", 35, "length"),
    ("--img-size", 224, "resolution"), ("--resolution", 512, "resolution"),
    ("--epochs", 3, None), ("--workers", 4, None), ("--max_steps", 100, None), ("--accuracy", 1, None),
])  # fmt: skip
def test_what_an_option_is_for(name, value, role):
    assert package()[0].role(option(name, value)) == role


def offered(*declared):
    return {name: (promise, rows) for name, title, promise, rows in package()[0].offers(declared)}


def test_a_smaller_batch_and_more_accumulation_go_together():
    found = offered(option("--batch-size", 8, typed="-b"), option("--grad-accum-steps", 2))
    promise, rows = found["option_accumulate"]
    assert promise == "same_up_to_rounding"
    assert rows == [("-b 4 --grad-accum-steps 4", 2), ("-b 2 --grad-accum-steps 8", 4), ("-b 1 --grad-accum-steps 16", 8)]
    assert found["option_batch"][0] == "different_training"


def test_pieces_of_a_batch_that_the_program_cuts_itself_keep_the_results():
    """--batch_size is what an update has, --microbatch a piece of it; -1: not cut."""
    found = offered(option("--batch_size", 64), option("--microbatch", -1))
    assert found["option_batch"][0] == "same_up_to_rounding" and "option_accumulate" not in found
    assert found["option_batch"][1][0] == ("--microbatch 32", 2)
    assert package()[0].forbids_accumulation([option("--device-batch-size", 8), option("--total-batch-size", 64)])


def test_nothing_is_offered_that_the_program_does_already():
    found = offered(option("--gradient_checkpointing", True), option("--bf16", True), option("--fp16", False))
    assert found == {}


@pytest.mark.parametrize("declared, name, promise, words", [
    (option("--use_checkpoint", False, "bool"), "option_checkpoint", "same_up_to_rounding", "--use_checkpoint True"),
    (option("--grad-checkpointing", False), "option_checkpoint", "same_up_to_rounding", "--grad-checkpointing"),
    (option("--mixed_precision", None, "str", ["no", "fp16", "bf16"]), "option_precision", "different_training",
     "--mixed_precision bf16"),
    (option("--optim", "adamw_torch", choices=["adamw_torch", "adafactor"]), "option_optimizer", "different_training",
     "--optim adafactor"),
    (option("--block_size", 1024), "option_length", "different_training", "--block_size 512"),
    (option("--img-size", 224), "option_resolution", "different_training", "--img-size 112"),
    (option("--batch", 8), "option_batch", "different_training", "--batch 4"),
])  # fmt: skip
def test_what_is_offered(declared, name, promise, words):
    found = offered(declared)
    assert list(found) == [name] and found[name][0] == promise and found[name][1][0][0] == words


def test_of_two_batches_that_are_as_plain_neither_is_taken():
    assert offered(option("--batch", 8), option("--batch-size", 8)) == {}


def test_a_script_that_sets_its_globals_from_the_command_line(monkeypatch):
    options = package()[1]
    text = "steps = 5 * 8\nbatch_size = 12\nname = 'x'\nexec(open('configurator.py').read())\nlater = 3\n"
    monkeypatch.setattr(sys, "argv", ["train.py", "--batch_size=16"])
    texts = {"configurator.py": "import sys\nfor arg in sys.argv[1:]:\n    globals()[arg] = 1\n"}
    found = {one.name: one for one in options.configured(ast.parse(text), texts.get)}
    assert {name: one.value for name, one in found.items()} == {"steps": 40, "batch_size": 16, "name": "x"}
    assert package()[0].written(found["batch_size"], 4) == "--batch_size=4"
    assert options.configured(ast.parse(text), {"configurator.py": "print(1)"}.get) == []


TRAINS = """
import %(imports)s
import torch
from torch.utils.data import DataLoader, TensorDataset

def train(batch_size, grad_accum_steps):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    loader = DataLoader(TensorDataset(torch.randn(96, 64)), batch_size=batch_size)
    for number, (x,) in enumerate(loader):
        x = x.cuda()
        loss = %(loss)s
        loss.backward()
        if (number + 1) %% grad_accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
    print("trained", batch_size, grad_accum_steps)

%(main)s
"""
MEAN = "torch.nn.functional.mse_loss(model(x), x) / grad_accum_steps"
PARSERS = {
    "argparse": ("argparse", """
parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default=16)
parser.add_argument("--grad-accum-steps", type=int, default=1)
parser.add_argument("--accumulation", type=int, help="deprecated: --grad-accum-steps")
args, _ = parser.parse_known_args()
train(args.batch_size, args.grad_accum_steps)
"""),
    "dataclass": ("dataclasses, transformers", """
@dataclasses.dataclass
class Arguments:
    batch_size: int = 16
    grad_accum_steps: int = 1

args, = transformers.HfArgumentParser(Arguments).parse_args_into_dataclasses()
train(args.batch_size, args.grad_accum_steps)
"""),
    "click": ("click", """
@click.command()
@click.option("--batch-size", default=16)
@click.option("--grad-accum-steps", default=1)
def main(batch_size, grad_accum_steps):
    train(batch_size, grad_accum_steps)

main()
"""),
    "typer": ("typer", """
def main(batch_size: int = 16, grad_accum_steps: int = 1):
    train(batch_size, grad_accum_steps)

typer.run(main)
"""),
}


def survey(outcome):
    return next(document["survey"] for document in outcome.documents if document["survey"])


@pytest.mark.parametrize("name", list(PARSERS))
def test_declared_options_are_read(virtual, name):
    """By each kind of parser; the line that is offered makes the same updates."""
    imports, main = PARSERS[name]
    program = TRAINS % {"imports": imports, "main": main, "loss": MEAN}
    before = virtual(program, "survey")
    rows = {row["id"]: row for row in survey(before)["possible"]}
    dashes = "--batch_size 8 --grad_accum_steps 2" if name == "dataclass" else "--batch-size 8 --grad-accum-steps 2"
    assert rows["option_accumulate"]["values"][0] == dashes and rows["option_accumulate"]["pieces"][:2] == [2, 4]
    after = virtual(program, "option_accumulate=" + dashes, arguments=dashes.split())
    assert "trained 8 2" in after.stdout and after.change("option_accumulate")["how"] == "Run the program with %s." % dashes
    assert_same_updates(before.document["pace"], after.document["pace"], passes=2)


def assert_same_updates(before, after, passes):
    assert before["updates"] == after["updates"] == 6 and before["samples"] == after["samples"] == 16
    assert before["loss_share"] == after["loss_share"] == 1
    assert (before["backward"], after["backward"]) == (1, passes)
    assert before["learning_rates"] == after["learning_rates"] and len(set(before["learning_rates"])) == 3


def test_nothing_is_a_change_that_acts_on_nothing(virtual):
    imports, main = PARSERS["argparse"]
    program = TRAINS % {"imports": imports, "main": main, "loss": MEAN}
    before, after = virtual(program), virtual(program, "nothing")
    assert after.change("nothing")["effective"] == 0 and before.peaks == after.peaks


def test_an_option_that_is_not_given_is_not_applied(virtual):
    imports, main = PARSERS["argparse"]
    program = TRAINS % {"imports": imports, "main": main, "loss": MEAN}
    entry = virtual(program, "option_accumulate=--batch-size 8 --grad-accum-steps 2").document["changes"][0]
    assert not entry["applied"] and "command line" in entry["why_not"]


def test_an_accumulation_that_forgets_to_divide_is_seen(virtual):
    imports, main = PARSERS["argparse"]
    program = TRAINS % {"imports": imports, "main": main, "loss": "torch.nn.functional.mse_loss(model(x), x)"}
    words = ["--batch-size", "8", "--grad-accum-steps", "2"]
    after = virtual(program, "option_accumulate=" + " ".join(words), arguments=words)
    assert after.document["pace"]["loss_share"] == 2


def test_our_own_accumulation_makes_the_same_updates(virtual):
    """Of a mean and of a sum."""
    imports, main = PARSERS["argparse"]
    for loss in (MEAN, "((model(x) - x) ** 2).sum()"):
        program = TRAINS % {"imports": imports, "main": main, "loss": loss}
        before, after = virtual(program, "survey"), virtual(program, "accumulate=4")
        after.change("accumulate")
        assert_same_updates(before.document["pace"], after.document["pace"], passes=4)


