"""save_everything.py ELSEWHERE [files]: writes over, renames over, appends to and removes what was there before, the way training programs do; without
transformers, where only files are wished for."""
import os
import pathlib
import shutil
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file

elsewhere = pathlib.Path(sys.argv[1])  # an absolute path outside of the working folder
home = pathlib.Path.home()
only_files = sys.argv[2:] == ["files"]

if only_files:
    model = torch.nn.Linear(256, 256).cuda()
else:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=64, n_head=2)).cuda()
state = model.state_dict()

torch.save(state, "checkpoint.pt")
assert torch.load("checkpoint.pt", weights_only=True).keys() == state.keys()
torch.save({"model": state}, elsewhere / "checkpoint.pt")
torch.save(state, home / "best.pt")
torch.save(state, "link.pt")  # a symbolic link to something real

contiguous = {name: tensor.clone().contiguous() for name, tensor in state.items() if name != "lm_head.weight"}
save_file(contiguous, "model.safetensors")
assert load_file("model.safetensors").keys() == contiguous.keys()

torch.save(state, "checkpoint.pt.tmp")
os.replace("checkpoint.pt.tmp", "last.pt")
assert os.path.getsize("last.pt") > 1000 and not os.path.exists("checkpoint.pt.tmp")
with open("log.txt", "a") as log:
    log.write("appended\n")
assert open("log.txt").read() == "before\nappended\n"
os.remove("removed.txt")
assert not os.path.exists("removed.txt")
shutil.rmtree("old")
os.makedirs("old")
pathlib.Path("old/new.txt").write_text("new")
assert os.listdir("old") == ["new.txt"]
move = "echo shell > moved.tmp && mv moved.tmp moved.txt && test $(cat moved.txt) = shell"
subprocess.run(move, shell=True, check=True)

if not only_files:
    class Tokens(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return {"input_ids": torch.zeros(16, dtype=torch.long), "labels": torch.zeros(16, dtype=torch.long)}

    arguments = TrainingArguments(
        output_dir="out", per_device_train_batch_size=4, max_steps=2, save_steps=1, save_total_limit=1, report_to="none"
    )
    Trainer(model=model, args=arguments, train_dataset=Tokens()).train()
    assert sorted(os.listdir("out")) == ["checkpoint-2", "keep.txt"], os.listdir("out")
    model.save_pretrained("out")
print("saved everything")
