# SPDX-License-Identifier: Apache-2.0
"""load_checkpoint.py FOLDER HOW: loads the model of checkpoint.py in one of the usual ways, and trains or infers."""

import glob
import os
import resource
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

folder, how = sys.argv[1:3]


def build():
    return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.bfloat16)


if how in ("map", "auto"):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16,
                                                 device_map={"": 0} if how == "map" else "auto")
elif how == "cpu":
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).cuda()
elif how == "cast":
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).half().cuda()
elif how in ("load_file", "safe_open"):
    import safetensors
    from safetensors.torch import load_file

    model, state = build().cuda(), {}
    for file in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        if how == "load_file":
            state.update(load_file(file, device="cuda:0"))
        else:
            with safetensors.safe_open(file, "pt") as opened:
                for name in opened.keys():
                    state[name] = opened.get_slice(name)[:].to("cuda", torch.float32)
    model.load_state_dict(state)
    del state
elif how in ("pickle", "mapped"):
    model = build()
    model.load_state_dict(torch.load(os.path.join(folder, "pickled.pt"), mmap=how == "mapped"), assign=True)
    model.cuda()
elif how == "checked":
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    largest = max(model.parameters(), key=torch.Tensor.numel)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert not torch.isnan(largest).any()
    print("pages", resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, largest.nbytes // 4096)
    assert not any(torch.isnan(parameter).any() for parameter in model.parameters())
    model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(2):
    model(input_ids=torch.ones((2, 64), dtype=torch.long, device="cuda"),
          labels=torch.ones((2, 64), dtype=torch.long, device="cuda")).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
