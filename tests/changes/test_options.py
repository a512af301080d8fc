# SPDX-License-Identifier: Apache-2.0
"""The program's own options: which of those that it declares are for what, and what is offered of them."""

import ast
import sys

import pytest
from conftest import ENVIRONMENTS, ROOT

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
    package()
    kind = kind or ("flag" if isinstance(value, bool) else type(value).__name__)
    return sys.modules["_tonnage_changes.option"].Option(name.lstrip("-").replace("-", "_"), (name,), typed, kind, False, choices, value)


@pytest.mark.parametrize("name, value, role", [
    ("--batch-size", 8, "batch"), ("--per_device_train_batch_size", 8, "batch"), ("--micro-batch", 8, "batch"),
    ("--bs", 8, "batch"), ("--batch-gpu", 8, "batch"), ("--batchSize", 8, "batch"), ("--device-batch-size", 8, "batch"), ("--microbatch", -1, "batch"),
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
    ("--load_in_4bit", False, "4bit"), ("--load-in-8bit", False, "8bit"), ("--load_in_4bit_path", "x", None),
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
    (option("--load-in-4bit", False), "option_weights", "different_training", "--load-in-4bit"),
    (option("--load_in_8bit", False, "bool"), "option_weights", "different_training", "--load_in_8bit True"),
])  # fmt: skip
def test_what_is_offered(declared, name, promise, words):
    found = offered(declared)
    assert list(found) == [name] and found[name][0] == promise and found[name][1][0][0] == words


def test_of_bits_of_weights_more_are_named_first_and_none_where_some_are_set():
    two = [option("--load-in-4bit", False), option("--load-in-8bit", False)]
    assert offered(*two)["option_weights"][1] == [("--load-in-8bit", 0), ("--load-in-4bit", 0)]
    assert offered(option("--load-in-4bit", True), two[1]) == {}


def test_of_two_batches_that_are_as_plain_neither_is_taken():
    assert offered(option("--batch", 8), option("--batch-size", 8)) == {}


def test_of_two_batches_one_that_is_not_in_use_is_no_rival():
    """transformer-xl: --gpu0_bsz is -1 on one GPU."""
    found = offered(option("--batch_size", 22), option("--gpu0_bsz", -1), option("--batch_chunk", 1))
    assert found["option_accumulate"][1][0] == ("--batch_chunk 2", 2) and found["option_batch"][1][0] == ("--batch_size 11", 2)


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


LIBRARIES = {  # name: (imports, main program, words that it is started with, files, what is offered first)
    "fire": ("fire", """
def main(data, batch_size=16, grad_accum_steps=1, val_batch_size=64, amp=False):
    train(batch_size, grad_accum_steps)

fire.Fire(main)
""", ["here"], {}, "--batch_size 8 --grad_accum_steps 2"),
    "absl": ("absl.app, absl.flags", """
FLAGS = absl.flags.FLAGS
absl.flags.DEFINE_integer("batch_size", 32, "")
absl.flags.DEFINE_integer("grad_accum_steps", 1, "")
absl.flags.DEFINE_bool("train", False, "")
absl.app.run(lambda argv: train(FLAGS.batch_size, FLAGS.grad_accum_steps))
""", ["--train", "--batch_size=16"], {}, "--batch_size=8 --grad_accum_steps=2"),
    "tyro": ("dataclasses, tyro", """
@dataclasses.dataclass
class Optimization:
    grad_accum_steps: int = 1

@dataclasses.dataclass
class Arguments:
    optimization: Optimization
    batch_size: int = 32
    eval_batch_size: int = 64

args = tyro.cli(Arguments)
train(args.batch_size, args.optimization.grad_accum_steps)
""", ["--batch-size", "16"], {}, "--batch-size 8 --optimization.grad-accum-steps 2"),
    "simple_parsing": ("dataclasses, simple_parsing", """
@dataclasses.dataclass
class Arguments:
    batch_size: int = 16
    grad_accum_steps: int = 1

parser = simple_parsing.ArgumentParser()
parser.add_arguments(Arguments, dest="config")
config = parser.parse_args().config
train(config.batch_size, config.grad_accum_steps)
""", [], {}, "--batch_size 8 --grad_accum_steps 2"),
    "jsonargparse": ("dataclasses, jsonargparse", """
@dataclasses.dataclass
class Data:
    batch_size: int = 32

def fit(data: Data, grad_accum_steps: int = 1):
    train(data.batch_size, grad_accum_steps)

def test(batch_size: int = 4):
    pass

jsonargparse.CLI([fit, test])
""", ["fit", "--data.batch_size=16"], {}, "--data.batch_size 8 --grad_accum_steps 2"),
    "hydra": ("hydra", """
@hydra.main(config_path=".", config_name="conf", version_base=None)
def main(config):
    train(config.loader.batch_size, config.optim.grad_accum_steps)

main()
""", ["optim.grad_accum_steps=1"],
        {"conf.yaml": "size: ${loader.batch_size}\nloader: {batch_size: 16}\nval: {batch_size: 64}\noptim:\n  grad_accum_steps: 4\n"},
        "loader.batch_size=8 optim.grad_accum_steps=2"),
    "omegaconf": ("omegaconf", """
OmegaConf = omegaconf.OmegaConf
config = OmegaConf.merge(OmegaConf.create({"batch_size": 16, "grad_accum_steps": 1}), OmegaConf.from_cli())
train(config.batch_size, config.grad_accum_steps)
""", [], {}, "batch_size=8 grad_accum_steps=2"),
    "yacs": ("argparse, yacs.config", """
parser = argparse.ArgumentParser()
parser.add_argument("--grad-accum-steps", type=int, default=1)
parser.add_argument("opts", nargs=argparse.REMAINDER)
args = parser.parse_args()
config = yacs.config.CfgNode({"DATA": yacs.config.CfgNode({"BATCH_SIZE": 32})})
config.merge_from_list(args.opts)
config.freeze()
train(config.DATA.BATCH_SIZE, args.grad_accum_steps)
""", ["--grad-accum-steps", "1", "DATA.BATCH_SIZE", "16"], {}, "DATA.BATCH_SIZE 8 --grad-accum-steps 2"),
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



@pytest.fixture
def options_python():
    found = ENVIRONMENTS / "prog-options"
    if not (found / "tonnage-stamp").exists():  # half of it may be there
        pytest.skip("environment prog-options is missing: tools/envs prog-options")
    return str(found / "bin/python")


def values_of(outcome, name):
    return {row["id"]: row["values"] for row in survey(outcome)["possible"]}.get(name, [])


@pytest.mark.parametrize("name", list(LIBRARIES))
def test_options_that_a_library_reads(virtual, options_python, name):
    """What is offered, written in the place of what stands there, is what the program gets."""
    imports, main, words, files, offered = LIBRARIES[name]
    program = TRAINS % {"imports": imports, "main": main, "loss": MEAN}
    before = virtual(program, "survey", arguments=words, files=files, python=options_python)
    assert "trained 16 1" in before.stdout
    assert values_of(before, "option_accumulate")[:1] == [offered], survey(before)["possible"]
    line = command_with(words, offered)
    after = virtual(program, "option_accumulate=" + offered, arguments=line, files=files, python=options_python)
    assert "trained 8 2" in after.stdout and after.change("option_accumulate")["effective"]
    assert_same_updates(before.document["pace"], after.document["pace"], passes=2)


def command_with(words, offered):
    """As src/change/change_command.c writes it: in the place of what stands there, else at the end."""
    words, rest = list(words), offered.split()
    while rest:
        word = rest.pop(0)
        name = word.partition("=")[0]
        value = rest.pop(0) if "=" not in word else None
        at = next((i for i, have in enumerate(words) if have == name or have.startswith(name + "=")), None)
        if at is None:
            words += [word] + ([value] if value is not None else [])
        elif value is None or "=" in words[at]:
            words[at] = word if value is None else "%s=%s" % (name, value)
        else:
            words[at + 1] = value
    return words


YAML = """# of a person
model:
  layers: [1, 2]
  name: 'x' # text
train:
  batch_size: 16   # per device
  "grad_accum_steps": 1
  note: |
    batch_size: 4
  stages:
    - batch_size: 3
eval:
  batch_size: 64
"""
FILES = {
    "conf.yaml": YAML,
    "conf.json": '{"eval": {"batch_size": 64}, "list": [{"batch_size": 3}],\n "train": {"batch_size": 16,\n  "grad_accum_steps": 1}}',
    "remarks.json": '{ // how to train\n "train": { /* per\n device */ "batch_size": 16, // not 4\n  # one update\n  "grad_accum_steps": 1}} // end\n',
    "conf.toml": "title = 'x'\n[train]\nbatch_size = 16 # per device\ngrad_accum_steps = 1\n[eval]\nbatch_size = 64\n",
}
READS = {
    "conf.yaml": ("sys, yaml", "config = yaml.safe_load(open(sys.argv[1]))"),
    "conf.json": ("sys, json, pathlib", "config = json.loads(pathlib.Path(sys.argv[1]).read_text())"),
    "remarks.json": ("sys, json, re", r"config = json.loads(re.sub(r'//.*|#.*|/\*[\s\S]*?\*/', '', open(sys.argv[1]).read()))"),
    "conf.toml": ("sys, tomllib", "config = tomllib.load(open(sys.argv[1], 'rb'))"),
}


@pytest.mark.parametrize("name", list(FILES))
def test_values_of_a_file_that_the_command_line_names(virtual, options_python, name):
    """The trial and the patched file do the same; nothing else of the file changes."""
    imports, read = READS[name]
    main = read + "\ntrain(config['train']['batch_size'], config['train']['grad_accum_steps'])"
    program = TRAINS % {"imports": imports, "main": main, "loss": MEAN}
    before = virtual(program, "survey", arguments=[name], files={name: FILES[name]}, python=options_python)
    offered = "file:%s:train.batch_size=8 file:%s:train.grad_accum_steps=2" % (name, name)
    assert values_of(before, "option_accumulate")[:1] == [offered], survey(before)["possible"]
    after = virtual(program, "option_accumulate=" + offered, arguments=[name], files={name: FILES[name]}, python=options_python)
    assert "trained 8 2" in after.stdout and (after.folder / name).read_text() == FILES[name]
    entry = after.change("option_accumulate")
    assert entry["how"] == "In %s set train.batch_size to 8 and train.grad_accum_steps to 2." % name
    assert_same_updates(before.document["pace"], after.document["pace"], passes=2)
    by_hand = virtual(program, arguments=[name], files={name: FILES[name]}, patch=entry["patch"], python=options_python)
    assert "trained 8 2" in by_hand.stdout and by_hand.peaks == after.peaks
    wanted = FILES[name].replace("16", "8").replace('steps": 1', 'steps": 2').replace("steps = 1", "steps = 2")
    assert (by_hand.folder / name).read_text() == wanted


def test_a_file_that_the_program_does_not_read_is_no_change(virtual, options_python):
    program = TRAINS % {"imports": "sys", "main": "train(16, 1)", "loss": MEAN}
    after = virtual(program, "option_batch=file:conf.yaml:train.batch_size=8", arguments=["conf.yaml"],
                    files={"conf.yaml": YAML}, python=options_python)  # fmt: skip
    assert not after.document["changes"][0]["applied"]


def test_batch_normalisation_makes_accumulation_by_the_own_options_another_training(virtual):
    """The list says why."""
    main = "train(int(os.environ.get('BATCH_SIZE', 32)), int(os.getenv('GRAD_ACCUM_STEPS', '1')))"
    program = (TRAINS % {"imports": "os", "main": main, "loss": MEAN}).replace("torch.nn.ReLU()", "torch.nn.BatchNorm1d(256)")
    offered = next(row for row in survey(virtual(program, "survey", BATCH_SIZE="16"))["possible"] if row["id"] == "option_accumulate")
    assert offered["results"] == "different_training"
    entry = virtual(program, "option_accumulate=" + offered["values"][0], BATCH_SIZE="16").change("option_accumulate")
    assert entry["results"] == "different_training" and "batch normalisation sees the smaller batches" in entry["how"]


def test_variables_of_the_environment(virtual):
    """As they are read: os.environ.get, os.getenv, os.environ[...]."""
    main = "train(int(os.environ.get('BATCH_SIZE', 32)), int(os.getenv('GRAD_ACCUM_STEPS', '1')))"
    program = TRAINS % {"imports": "os", "main": main, "loss": MEAN}
    before = virtual(program, "survey", BATCH_SIZE="16")
    offered = "env:BATCH_SIZE=8 env:GRAD_ACCUM_STEPS=2"
    assert values_of(before, "option_accumulate")[:1] == [offered], survey(before)["possible"]
    after = virtual(program, "option_accumulate=" + offered, BATCH_SIZE="16")
    assert "trained 8 2" in after.stdout
    assert after.change("option_accumulate")["how"] == "Set BATCH_SIZE=8 GRAD_ACCUM_STEPS=2 in its environment."
    assert_same_updates(before.document["pace"], after.document["pace"], passes=2)


def test_an_option_that_is_not_given_has_the_value_of_the_configuration():
    """`--batch-size`, default None, over `DATA.BATCH_SIZE` 32 of a file."""
    given = option("--batch-size", None, "int")
    settled = option("DATA.BATCH_SIZE", 32)._replace(spellings=())
    found = {name: rows for name, title, promise, rows in package()[0].offers([given], [[settled]])}
    assert found["option_batch"][0] == ("--batch-size 16", 2)


def test_accumulation_of_two_models_is_set_for_both():
    """As BigGAN's; where the two say other things, none is."""
    of_each = [option("--num_G_accumulations", 1), option("--num_D_accumulations", 1), option("--num_standing_accumulations", 16)]
    rows = offered(option("--batch_size", 50), *of_each)["option_accumulate"][1]
    assert rows[0] == ("--batch_size 25 --num_G_accumulations 2 --num_D_accumulations 2", 2)
    assert offered(option("--batch_size", 50), *of_each)["option_accumulate"][1][0] == rows[0]
    assert "option_accumulate" not in offered(option("--batch_size", 50), option("--num_G_accumulations", 1), option("--num_D_accumulations", 4))
    settled = [each._replace(spellings=()) for each in of_each]  # of a configuration, which no line can set
    assert "option_accumulate" not in {row[0] for row in package()[0].offers([option("--batch_size", 50)], [settled])}
    assert "option_accumulate" not in offered(option("--batch_size", 50), option("--accumulate", 1), option("--log_accumulated_steps", 1))


def test_pieces_that_the_program_cuts_a_batch_into():
    promise, rows = offered(option("--batch_size", 60), option("--batch_chunk", 1))["option_accumulate"]
    assert promise == "same_up_to_rounding" and rows[:4] == [("--batch_chunk %d" % k, k) for k in (2, 3, 4, 5)]


# ---- what the text hands to a library's trainer ----

LIBRARY = """
import torch
from torch.utils.data import DataLoader

class _Base:
    def __init__(self, model, data, *, %(batch)s=32, shuffle=False):
        self.model, self.batch_size = model, %(batch)s
        self.loader = DataLoader(data, batch_size=self.batch_size, shuffle=shuffle)

class Trainer(_Base):
    def __init__(self, model, data, gradient_accumulate_every=1, eval_batch_size=64, **more):
        super().__init__(model, data, **more)
        self.every = gradient_accumulate_every

    def train(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        for number, (x,) in enumerate(self.loader):
            x = x.cuda()
            loss = torch.nn.functional.mse_loss(self.model(x), x) / self.every
            loss.backward()
            if (number + 1) %% self.every == 0:
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
        print("trained", self.batch_size, self.every)
"""
HANDS_ON = """
import sys
sys.path[:0] = ["site-packages", "vendored"]
import torch
%(imports)s

SIZE = 16
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).cuda()
data = torch.utils.data.TensorDataset(torch.randn(96, 64))

def main():
    trainer = %(call)s
    trainer.train()

main()
"""
CALLS = {
    "number": ("from trainers import Trainer", "Trainer(model, data, train_batch_size=16)", "Trainer", "train_batch_size"),
    "name": ("import trainers", "trainers.Trainer(model, data, 1, micro_batch=SIZE)", "trainers.Trainer", "micro_batch"),
    "several lines": ("import trainers as t", "t.Trainer(\n        model,\n        data,\n        batch_size=16,  # of a person\n    )", "t.Trainer", "batch_size"),
}  # fmt: skip


@pytest.mark.parametrize("call", list(CALLS))
def test_arguments_of_a_librarys_trainer(virtual, call):
    """The library makes the batches: what is changed is the argument in the program's text, or one that the library declares."""
    imports, text, name, batch = CALLS[call]
    program = HANDS_ON % {"imports": imports, "call": text}
    files = {"site-packages/trainers.py": LIBRARY % {"batch": batch}}
    if call == "several lines":  # as `pip install --target vendored` leaves it
        files = {"vendored/trainers.py": files["site-packages/trainers.py"],
                 "vendored/trainers-1.dist-info/RECORD": "trainers.py,sha256=x,1\ntrainers-1.dist-info/RECORD,,\n"}  # fmt: skip
    before = virtual(program, "survey", files=files)
    assert "trained 16 1" in before.stdout
    here = f"file:program.py:{name}."
    assert values_of(before, "option_batch")[:2] == [f"{here}{batch}=8", f"{here}{batch}=4"], survey(before)["possible"]
    if call == "name":  # how often it updates is given by position: it is nobody's to add
        assert values_of(before, "option_accumulate") == []
        return
    offered = f"{here}{batch}=8 {here}gradient_accumulate_every=2"
    assert values_of(before, "option_accumulate")[:1] == [offered], survey(before)["possible"]
    after = virtual(program, "option_accumulate=" + offered, files=files)
    entry = after.change("option_accumulate")
    assert "trained 8 2" in after.stdout and entry["effective"]
    assert entry["how"] == f"In program.py set {name}.{batch} to 8 and {name}.gradient_accumulate_every to 2."
    assert_same_updates(before.document["pace"], after.document["pace"], passes=2)
    by_hand = virtual(program, files=files, patch=entry["patch"])
    assert "trained 8 2" in by_hand.stdout and by_hand.peaks == after.peaks


@pytest.mark.parametrize("head, call", [
    ("from trainers import Trainer", "[Trainer(model, data, batch_size=16), Trainer(model, data, batch_size=16)][0]"),
    ("import trainers\nclass Trainer(trainers.Trainer):\n    pass", "Trainer(model, data, batch_size=16)"),
    ("from trainers import Trainer\nmore = {'batch_size': 16}", "Trainer(model, data, **more)"),
], ids=["one of two", "the program's own class", "elsewhere"])  # fmt: skip
def test_calls_that_stay_as_they_are(virtual, head, call):
    files = {"site-packages/trainers.py": LIBRARY % {"batch": "batch_size"}}
    before = virtual(HANDS_ON % {"imports": head, "call": call}, "survey", files=files)
    assert values_of(before, "option_batch") == [] and survey(before)["facts"]["batches"] == [16], survey(before)


SPAWNS = """
    import argparse
    import multiprocessing
    import os

    def main():
        import torch  # the worker does without
        from torch.utils.data import DataLoader, TensorDataset

        parser = argparse.ArgumentParser()
        parser.add_argument("--batch", type=int, default=16)
        parser.add_argument("--batch-gpu", type=int)
        options = parser.parse_args()
        size = options.batch_gpu or options.batch
        os.environ["RANK"] = "0"
        model = torch.nn.Linear(16, 4).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=.1)
        data = TensorDataset(torch.randn(96, 16))
        worker = multiprocessing.get_context("spawn").Process(target=os.getpid)
        worker.start()
        batches = iter(DataLoader(data, batch_size=size))
        for update in range(6):
            for _ in range(options.batch // size):
                (model(next(batches)[0].cuda()).square().sum() / options.batch).backward()
            optimizer.step()
            optimizer.zero_grad()
        worker.join()
        print("trained", size, worker.exitcode)

    if __name__ == "__main__":
        main()
"""


def test_a_process_that_multiprocessing_starts_has_no_command_line_of_the_program(virtual):
    """The worker knows nothing of the option, and does not keep it from being applied. --batch is what an update has."""
    before = virtual(SPAWNS, "survey")
    row = next(row for row in survey(before)["possible"] if row["id"] == "option_batch")
    assert (row["values"][0], row["results"]) == ("--batch-gpu 8", "same_up_to_rounding")
    after = virtual(SPAWNS, "option_batch=--batch-gpu 8", arguments=["--batch-gpu", "8"])
    entries = [entry for document in after.documents for entry in document["changes"]]
    assert "trained 8 0" in after.stdout and len(after.documents) > 1 and entries and all(entry["why_not"] is None for entry in entries if not entry["found_nothing"]), entries


SPLITS = """
    import argparse
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_split", dest="batch_split", default=1)  # what is given comes as text
    split = int(parser.parse_args().batch_split)
    model = torch.nn.Linear(16, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    for x, in DataLoader(TensorDataset(torch.randn(96, 16)), batch_size=16):
        for part in torch.chunk(x, split):
            (model(part.cuda()).square().sum() / len(x)).backward()
        optimizer.step()
        optimizer.zero_grad()
    print("trained", split)
"""


def test_an_option_that_cuts_the_batch_needs_no_option_for_the_batch(virtual):
    """Its size stands in a file, or in the program's text: the loader has it."""
    before = virtual(SPLITS, "survey")
    row = next(row for row in survey(before)["possible"] if row["id"] == "option_accumulate")
    assert (row["values"][0], row["pieces"][0]) == ("--batch_split 2", 2)
    after = virtual(SPLITS, "option_accumulate=--batch_split 2", arguments=["--batch_split", "2"])
    assert "trained 2" in after.stdout and after.change("option_accumulate")["results"] == "same_up_to_rounding"
    for figure in ("samples", "updates", "loss_share"):
        assert before.document["pace"][figure] == pytest.approx(after.document["pace"][figure]), figure


CONSTANTS = """
import sys
sys.path[:0] = ["."]
import torch
from torch.utils.data import DataLoader, TensorDataset
%(constants)s

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
batches = iter(DataLoader(TensorDataset(torch.randn(96, 64)), batch_size=BATCH_SIZE))
for update in range(6):
    for number in range(%(passes)s):
        x = next(batches)[0].cuda()
        for part in x.split(%(part)s):
            (model(part).square().mean() / (%(passes)s * len(x) / len(part))).backward()
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()
print("trained", len(part), %(passes)s)
"""
WITH_CONSTANTS = {
    "accumulation": ("BATCH_SIZE = 16\nGRADIENT_ACCUMULATE_EVERY = 1", "GRADIENT_ACCUMULATE_EVERY", "BATCH_SIZE",
                     "option_accumulate", {"BATCH_SIZE": 8, "GRADIENT_ACCUMULATE_EVERY": 2}),
    "a product": ("BATCH_SIZE = 2 * 8\nGRAD_ACC_STEPS = 1", "GRAD_ACC_STEPS", "BATCH_SIZE",
                  "option_accumulate", {"BATCH_SIZE": 8, "GRAD_ACC_STEPS": 2}),
    "the most at a time": ("BATCH_SIZE = 16\nMAX_BATCH_SIZE = 8", "1", "MAX_BATCH_SIZE", "option_batch", {"MAX_BATCH_SIZE": 4}),
}  # fmt: skip


@pytest.mark.parametrize("file", ["program.py", "settings.py"])
@pytest.mark.parametrize("name", list(WITH_CONSTANTS))
def test_constants_of_the_programs_text(virtual, name, file):
    """What stands at the top of the script, or of a module of the program's, and the patch that a person applies."""
    text, passes, part, change, wanted = WITH_CONSTANTS[name]
    files = {} if file == "program.py" else {file: text + "\n"}
    program = CONSTANTS % {"constants": text if not files else "from settings import *", "passes": passes, "part": part}
    before = virtual(program, "survey", files=files)
    offered = " ".join(f"file:{file}:{constant}={value}" for constant, value in wanted.items())
    assert values_of(before, change)[:1] == [offered], survey(before)["possible"]
    row = next(row for row in survey(before)["possible"] if row["id"] == change)
    assert row["results"] == "same_up_to_rounding" and "the program's own constant" in row["title"]
    after = virtual(program, f"{change}={offered}", files=files)
    entry = after.change(change)
    assert entry["effective"] and entry["how"].startswith(f"In {file} set {part} to {wanted[part]}")
    assert after.document["pace"]["backward"] == 2 * before.document["pace"]["backward"]
    for figure in ("samples", "updates", "loss_share", "learning_rates"):
        assert before.document["pace"][figure] == after.document["pace"][figure], figure
    by_hand = virtual(program, files=files, patch=entry["patch"])
    assert by_hand.stdout == after.stdout != before.stdout and by_hand.peaks == after.peaks


@pytest.mark.parametrize("text", [
    "BATCH_SIZE = 16",  # a smaller one is another training: `batch` says so
    "BATCH_SIZE = 16\nACCUMULATE = 1\nBATCH_SIZE = 8",
    "BATCH_SIZE = 16\nACCUMULATE = 1\ndef change():\n    global BATCH_SIZE\n    BATCH_SIZE = 4",
    "BATCH_SIZE = len(sys.path) and 16\nACCUMULATE = 1",
    "BATCH_SIZE = 16\nMAX_BATCH_SIZE = 64",
], ids=["nothing that keeps the results", "bound twice", "global", "computed", "a limit that does nothing"])  # fmt: skip
def test_constants_that_are_none(virtual, text):
    before = virtual(CONSTANTS % {"constants": text, "passes": "1", "part": "BATCH_SIZE"}, "survey")
    assert not [row for row in survey(before)["possible"] if row["id"].startswith("option_")], survey(before)["possible"]
    assert not survey(before)["facts"]["cuts_batches"]
