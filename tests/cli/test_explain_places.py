# SPDX-License-Identifier: Apache-2.0
"""`tonnage explain` reads tracebacks: the phase, the framework, and the advice that follows from both.

Each case is a traceback as that framework prints it, cut to the frames that matter. A row of the tables that is lost
or too greedy changes a case.
"""

import json
import re
import subprocess

import pytest
from command import ROOT, TONNAGE

LIB = "/env/lib/python3.11/site-packages/"
FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.64 " \
       "GiB of which 100.00 MiB is free. Including non-PyTorch memory, this process has 23.50 GiB memory in use. Of the " \
       "allocated memory 22.90 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."  # fmt: skip

OWN = ("train.py", "<module>", "main()")
CALL = ("torch/nn/modules/module.py", "_call_impl", "return forward_call(*args, **kwargs)")
LINEAR = ("torch/nn/modules/linear.py", "forward", "return F.linear(input, self.weight, self.bias)")
LLAMA = ("transformers/models/llama/modeling_llama.py", "forward", "hidden_states = decoder_layer(")
ENGINE = ("torch/autograd/graph.py", "_engine_run_backward", "return Variable._execution_engine.run_backward(")
TRAIN = ("transformers/trainer.py", "_inner_training_loop", "tr_loss_step = self.training_step(model, inputs)")
EVALUATE = ("transformers/trainer.py", "evaluate", "output = eval_loop(")
LIGHTNING = ("lightning/pytorch/loops/optimization/automatic.py", "_optimizer_step", "call._call_lightning_module_hook(")

CASES = {
    "plain forward": ([OWN, CALL, LINEAR], "forward", "pytorch"),
    "plain backward": ([("train.py", "main", "loss.backward()"), ENGINE], "backward", "pytorch"),
    "the trainer's backward pass": (
        [TRAIN, ("accelerate/accelerator.py", "backward", "loss.backward(**kwargs)"), ENGINE], "backward", "transformers"),
    "computed again within the backward pass": (
        [TRAIN, ENGINE, ("torch/utils/checkpoint.py", "backward", "outputs = ctx.run_function(*args)"), CALL, LLAMA],
        "backward", "transformers"),
    "trl is built on the trainer": (
        [TRAIN, ("trl/trainer/dpo_trainer.py", "concatenated_forward", "outputs = model(input_ids)"), LLAMA], "forward", "trl"),
    "trl's loss": (
        [TRAIN, ("trl/trainer/utils.py", "selective_log_softmax", "per_token = logits.logsumexp(-1)")], "loss", "trl"),
    "liger's loss": (
        [TRAIN, ("trl/trainer/grpo_trainer.py", "compute_liger_loss", "loss, metrics = self.liger_grpo_loss("),
         CALL, ("liger_kernel/chunked_loss/grpo_loss.py", "forward", "return LigerFusedLinearGRPOFunction.apply(")],
        "loss", "trl"),
    "trl generates": (
        [TRAIN, ("trl/trainer/grpo_trainer.py", "_generate_single_turn", "completion_ids = unwrapped_model("), CALL, LLAMA],
        "generate", "trl"),
    "the model's own loss": (
        [TRAIN, CALL, LLAMA, ("transformers/loss/loss_utils.py", "ForCausalLMLoss", "logits = logits.float()")],
        "loss", "transformers"),
    "boxes are assigned to predictions": (
        [OWN, ("mmdet/models/task_modules/assigners/max_iou_assigner.py", "assign", "overlaps = self.iou_calculator(a, b)")],
        "loss", "mmdetection"),
    "ComfyUI in a folder of another name": (
        [("/opt/ui/comfy/ldm/modules/diffusionmodules/mmdit.py", "_block_mixing", "attn = optimized_attention(")],
        "generate", "comfyui"),
    "ComfyUI puts weights on the card": (
        [("/opt/ui/comfy/samplers.py", "sample", "samples = sampler.sample("),
         ("/opt/ui/comfy/model_patcher.py", "patch_weight_to_device", "temp_weight = cast_to_device(weight, device_to)")],
        "load", "comfyui"),
    "faster-whisper is made": ([OWN, ("faster_whisper/transcribe.py", "__init__", "self.model = ctranslate2.models.Whisper(")],
                               "load", "faster-whisper"),
    "faster-whisper transcribes": (
        [OWN, ("faster_whisper/transcribe.py", "generate_with_fallback", "result = self.model.generate(")],
        "generate", "faster-whisper"),
    "parameters are gathered": (
        [OWN, ("torch/distributed/distributed_c10d.py", "all_gather", "work = group.allgather([tensor_list], [tensor])")],
        "gather", "pytorch"),
    "parameters are gathered within a pass": (
        [OWN, CALL, ("torch/distributed/distributed_c10d.py", "all_gather_into_tensor", "work = group._allgather_base(")],
        "forward", "pytorch"),
    "the loss of a program": ([("train.py", "main", "loss = criterion(out, y)"),
                               ("torch/nn/functional.py", "cross_entropy", "return torch._C._nn.cross_entropy_loss(")],
                              "loss", "pytorch"),
    "an update": ([("train.py", "main", "optimizer.step()"),
                   ("torch/optim/adamw.py", "_init_group", 'state["exp_avg"] = torch.zeros_like(')], "optimizer", "pytorch"),
    "Lightning runs the passes within its update": (
        [LIGHTNING, ("torch/optim/adamw.py", "step", "loss = closure()"), CALL, LINEAR], "forward", "lightning"),
    "Lightning's update": (
        [LIGHTNING, ("torch/optim/adam.py", "step", "self._init_group(")], "optimizer", "lightning"),
    "an evaluation consists of forward passes": ([TRAIN, EVALUATE, CALL, LLAMA], "evaluation", "transformers"),
    "an evaluation's results": (
        [EVALUATE, ("transformers/trainer_pt_utils.py", "nested_concat", "return torch_pad_and_concatenate(tensors, new)")],
        "gather", "transformers"),
    "generating within an evaluation": (
        [EVALUATE, ("transformers/generation/utils.py", "generate", "result = self._sample("), CALL, LLAMA],
        "generate", "transformers"),
    "a loop of one's own to evaluate": ([("tools.py", "validate", "out = net(x)"), CALL, LINEAR], "evaluation", "pytorch"),
    "weights are loaded": (
        [OWN, ("transformers/modeling_utils.py", "from_pretrained", "model = cls(config)"),
         ("torch/nn/modules/linear.py", "__init__", "self.weight = Parameter(torch.empty(")], "load", "transformers"),
    "the trainer resumes": (
        [("transformers/trainer.py", "_load_optimizer_and_scheduler", "torch.load(os.path.join(checkpoint, NAME))"),
         ("torch/serialization.py", "load", "return _load(")], "resume", "transformers"),
    "a program resumes": (
        [("train.py", "resume", "state = torch.load(path)"), ("torch/serialization.py", "_load", "result = unpickler.load()")],
        "resume", "pytorch"),
    "a program loads": (
        [("train.py", "main", "state = torch.load(path)"), ("torch/serialization.py", "_load", "result = unpickler.load()")],
        "load", "pytorch"),
    "the model moves": (
        [("train.py", "main", 'model.to("cuda")'), ("torch/nn/modules/module.py", "_apply", "param_applied = fn(param)")],
        "build", "pytorch"),
    "FSDP gathers to save": (
        [("train.py", "save_checkpoint", "state = model.state_dict()"),
         ("torch/distributed/fsdp/_state_dict_utils.py", "_full_pre_state_dict_hook", "_common_unshard_pre_state_dict_hook(")],
        "gather", "fsdp"),
    "saving": ([("train.py", "main", "torch.save(state, path)"), ("torch/serialization.py", "save", "_save(obj)")],
               "save", "pytorch"),
    "DeepSpeed's update": (
        [OWN, ("deepspeed/runtime/engine.py", "_take_model_step", "self.optimizer.step()"),
         ("deepspeed/runtime/zero/stage_1_and_2.py", "step", "self._optimizer_step(i)")], "optimizer", "deepspeed"),
    "data": ([("train.py", "main", "for batch in train_loader:"),
              ("torch/utils/data/_utils/pin_memory.py", "pin_memory", "return data.pin_memory(device)")], "data", "pytorch"),
    "vLLM starts": (
        [("vllm/v1/worker/gpu_worker.py", "determine_available_memory", "self.model_runner.profile_run()"),
         CALL, ("vllm/model_executor/models/llama.py", "forward", "hidden_states = self.model(")], "load", "vllm"),
    "vLLM's workers start": (
        [("vllm/entrypoints/llm.py", "__init__", "self.llm_engine = LLMEngine.from_engine_args(args)"),
         ("vllm/worker/worker.py", "_init_distributed_environment", "torch.distributed.all_reduce(torch.zeros(1).cuda())")],
        "load", "vllm"),
    "predictions that are only detached": (
        [EVALUATE, ("transformers/trainer_pt_utils.py", "nested_detach", "return tensors.detach()")],
        "evaluation", "transformers"),
    "ComfyUI loads within a node": (
        [("D:/ComfyUI/execution.py", "process_inputs", "result = f(**inputs)"),
         ("D:/ComfyUI/comfy/sd.py", "load_clip", "clip = CLIP(target)"), ("D:/ComfyUI/comfy/utils.py", "load_torch_file", "f()")],
        "load", "comfyui"),
    "vLLM serves": (
        [("vllm/v1/worker/gpu_worker.py", "execute_model", "output = self.model_runner.execute_model("), CALL, LINEAR],
        "generate", "vllm"),
    "SGLang serves": (
        [("sglang/srt/managers/scheduler.py", "run_batch", "self.tp_worker.forward_batch_generation("), CALL, LINEAR],
        "generate", "sglang"),
    "SGLang's thread of forward passes": (
        [("sglang/srt/managers/tp_worker_overlap_thread.py", "forward_thread_func", "with stream(self.forward_stream):")],
        "generate", "sglang"),
    "a library's model, cut to one frame": (
        [("diffusers/models/embeddings.py", "apply_rotary_emb", "out = (x.float() * cos).to(x.dtype)")], "forward", "diffusers"),
    "verl scores": ([("/opt/verl/workers/actor/dp_actor.py", "_forward_micro_batch", "entropy = entropy_of(logits)")], "forward", "verl"),
    "ColossalAI's update": ([("colossalai/zero/low_level_optim.py", "step", "self.optim.step()")], "optimizer", "colossalai"),
    "diffusers decodes": (
        [OWN, ("diffusers/pipelines/flux/pipeline_flux.py", "__call__", "image = self.vae.decode(latents)"),
         ("diffusers/models/autoencoders/autoencoder_kl.py", "decode", "decoded = self._decode(z).sample")],
        "generate", "diffusers"),
    "peft in a loop of one's own": (
        [OWN, ("peft/peft_model.py", "forward", "return self.base_model("), CALL, LLAMA], "forward", "peft"),
    "timm": ([OWN, ("timm/models/vision_transformer.py", "forward_features", "x = self.blocks(x)"), CALL], "forward", "timm"),
    "ultralytics": (
        [OWN, ("ultralytics/engine/trainer.py", "_do_train", "loss, self.loss_items = self.model(batch)"), CALL],
        "forward", "ultralytics"),
    "ultralytics' loss": (
        [OWN, ("ultralytics/engine/trainer.py", "_do_train", "loss = self.model(batch)"), CALL,
         ("ultralytics/utils/loss.py", "__call__", "loss[0] = self.assigner(")], "loss", "ultralytics"),
    "words of a function's name": ([OWN, ("own/run.py", "run_val_epoch_slow", "out = net(x)"), CALL], "evaluation", "pytorch"),
    "words that only look alike": ([("own/run.py", "values_of", "out = a * b")], None, "pytorch"),
    "a function of weights": ([("own/models.py", "load_big_model_wrapper", "return reader(path)")], "load", "pytorch"),
    "a loss of one's own": ([OWN, CALL, ("own/parts.py", "feature_loss", "total += abs(a - b).mean()")], "loss", "pytorch"),
    "forward and backward in one": ([("own/loop.py", "forward_backward_batch", "y = net(x)"), CALL, LINEAR], "forward", "pytorch"),
    "a package that drives": (
        [("nobody_knows/app.py", "validate", "self.score(x)"), ("torch/nn/functional.py", "linear", "return f(x)")],
        "evaluation", "nobody-knows"),
    "a package's engine": (
        [("nobody_knows/engine/loop.py", "go_on", "y = net(x)"), CALL, LINEAR], "forward", "nobody-knows"),
    "a package of parts": ([("nobody_knows/blocks.py", "forward", "return a @ b")], "forward", "pytorch"),
    "a trainer goes before a package": (
        [("nobody_knows/app.py", "train", "trainer.fit(model)"), ("lightning/pytorch/trainer/trainer.py", "fit", "call.go()")],
        None, "lightning"),
    "what only carries calls on": (
        [("gradio/queueing.py", "process_events", "await call()"), ("anyio/to_thread.py", "run_sync", "return f()")], None, "pytorch"),
    "nothing tells": ([("stress.py", "main", "c = torch.matmul(a, b)")], None, "pytorch"),
    "names that only begin alike": (
        [("prog.py", "forwarding_table", "save_models_of(build(x)); reloaded = unload_state_dict_hooks(1)")], None, "pytorch"),
}  # fmt: skip


def traceback(frames):
    lines = ["Traceback (most recent call last):"]
    for number, (path, function, code) in enumerate(frames, 1):
        folder = "" if ":" in path else LIB if "/" in path else "/work/"
        lines.append(f'  File "{folder}{path}", line {number}, in {function}')
        lines.append(f"    {code}")
    return "\n".join([*lines, FULL])


def explain(text, *words):
    done = subprocess.run([str(TONNAGE), "explain", *words], input=text.encode(), capture_output=True, timeout=60, check=True)
    return done.stdout.decode()


def first(text):
    return json.loads(explain(text, "-", "--json", "-"))["errors"][0]


@pytest.mark.parametrize("name", CASES)
def test_phase_and_framework(name, schema):
    frames, phase, framework = CASES[name]
    document = json.loads(explain(traceback(frames), "-", "--json", "-"))
    schema("explain", document)
    error = document["errors"][0]
    assert (error["phase"], error["framework"]) == (phase, framework)


def test_other_layouts():
    """The same frames as a notebook prints them, in one line of JSON, with Windows' paths, and behind a rank."""
    frames = [TRAIN, ("accelerate/accelerator.py", "backward", "loss.backward(**kwargs)"), ENGINE]
    text = traceback(frames)
    notebook = "\n".join(
        f"File ~{LIB}{path}:{number}, in Trainer.{function}(self, x)\n   {number - 1} before\n-> {number} {code}\n"
        for number, (path, function, code) in enumerate(frames, 1)
    )
    layouts = {
        "json": json.dumps({"message": text}),
        "windows": text.replace("/env/lib/python3.11/", "C:\\env\\Lib\\").replace("/", "\\"),
        "rank": "\n".join("[rank3]: " + line for line in text.split("\n")),
        "notebook": notebook + "\n" + FULL,
        "notebook with links": re.sub(r"File (\S+), in", r"File [\1](http://host/lab/\1), in", notebook) + "\n" + FULL,
        "cut": text[text.index("site-packages") :],
        "after": FULL + "\n" + text.rsplit("\n", 1)[0],
    }
    found = {name: (first(layout)["phase"], first(layout)["framework"]) for name, layout in layouts.items()}
    assert found == dict.fromkeys(layouts, ("backward", "transformers"))


def test_ray_names_the_method():
    """What another process was doing stands in Ray's own line."""
    remote = "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Worker.rollout_generate_sequences() (pid=12, ip=10.0.0.1)\n"
    assert first(remote + FULL)["phase"] == "generate"
    assert first(remote.replace("generate_sequences", "do") + FULL)["phase"] is None


def test_words_of_a_server():
    told = "(APIServer pid=1) ERROR 05-01 14:39:06 [async_llm.py:699] AsyncLLM output_handler failed.\n"
    assert (first(told + FULL)["phase"], first(told + FULL)["framework"]) == ("generate", "vllm")


def test_without_frames_nothing_is_claimed():
    error = first(FULL)
    assert (error["phase"], error["framework"]) == (None, None)


def test_the_next_traceback_starts_anew():
    text = traceback(CASES["an update"][0]) + "\nepoch 2\n" + traceback(CASES["nothing tells"][0]).replace("512", "640")
    errors = json.loads(explain(text, "-", "--json", "-"))["errors"]
    assert [(error["phase"], error["framework"]) for error in errors] == [("optimizer", "pytorch"), (None, "pytorch")]


def test_each_rank_has_its_own():
    one = ["[rank0]: " + line for line in traceback(CASES["plain backward"][0]).split("\n")]
    two = ["[rank1]: " + line for line in traceback(CASES["a program loads"][0]).replace("512", "640").split("\n")]
    text = "\n".join(line for pair in zip(one, two) for line in pair)
    errors = json.loads(explain(text, "-", "--json", "-"))["errors"]
    assert {(error["fields"]["rank"], error["phase"]) for error in errors} == {(0, "backward"), (1, "load")}


def test_for_a_person():
    assert "\n  in the backward pass of transformers' Trainer\n" in explain(traceback(CASES["the trainer's backward pass"][0]))
    assert "\n  in the backward pass\n" in explain(traceback(CASES["plain backward"][0]))
    assert "\n  while starting vLLM\n" in explain(traceback(CASES["vLLM starts"][0]))
    assert "\n  while loading weights\n" in explain(traceback(CASES["a program loads"][0]))


@pytest.mark.parametrize("name, engine", [("vllm_cache_length", "vLLM"), ("vllm_busy_card", "vLLM"), ("exllama", "ExLlama")])
def test_an_engine_that_refuses_to_start_loads_no_weights(name, engine):
    said = explain((ROOT / f"tests/golden/explain/{name}.txt").read_text())
    assert f"\n  while starting {engine}\n" in said and "loading weights" not in said


# Case of CASES, what its first advice names, and words of a text that has this already.
ADVICE = [
    ("a program loads", 'map_location="cpu"', 'state = torch.load(path, map_location="cpu")'),
    ("a program resumes", 'map_location="cpu"', 'state = torch.load(path, map_location="cpu")'),
    ("weights are loaded", 'device_map="auto"', 'model = from_pretrained(name, device_map="auto")'),
    ("vLLM starts", "--max-model-len", "vllm serve name --max-model-len 4096"),
    ("vLLM serves", "--max-num-seqs", "vllm serve name --max-num-seqs 16"),
    ("FSDP gathers to save", "FullStateDictConfig(offload_to_cpu=True, rank0_only=True)", "rank0_only=True"),
    ("an evaluation's results", "eval_accumulation_steps", "eval_accumulation_steps=4"),
    ("an evaluation consists of forward passes", "per_device_eval_batch_size", None),
    ("the trainer's backward pass", "per_device_train_batch_size", None),
    ("the model's own loss", "per_device_train_batch_size", None),
    ("diffusers decodes", "vae.enable_tiling()", "pipe.vae.enable_tiling()"),
    ("ultralytics", "batch=-1", "yolo train batch=-1"),
]


@pytest.mark.parametrize("name, advice, already", ADVICE)
def test_advice_follows_from_the_phase(name, advice, already):
    text = traceback(CASES[name][0])
    assert advice in first(text)["do"][0]
    if already:
        assert not any(advice in step for step in first(already + "\n" + text)["do"])


def test_the_update_of_the_trainer():
    text = traceback([TRAIN, ("torch/optim/adamw.py", "_init_group", 'state["exp_avg"] = torch.zeros_like(')])
    assert "adamw_bnb_8bit" in first(text)["do"][0]
    assert not any("adamw_bnb_8bit" in step for step in first("optim=adafactor\n" + text)["do"])


def test_accelerate_resumes():
    text = traceback([OWN, ("accelerate/accelerator.py", "load_state", "load_accelerator_state(")])
    assert "accelerator.load_state" in first(text)["do"][0]


def test_lightning_and_the_picture_programs():
    """Accumulation, tiling and switches by the names of each program."""
    forward = first(traceback(CASES["Lightning runs the passes within its update"][0]))
    assert "accumulate_grad_batches" in forward["do"][0]
    tiled = first("pipe.enable_model_cpu_offload()\n" + traceback(CASES["diffusers decodes"][0]))
    assert "vae.enable_tiling()" in tiled["do"][0]
    comfy = traceback([]).replace(FULL, '  File "D:\\ComfyUI\\comfy\\samplers.py", line 1, in sample\n    x = f(x)\n' + FULL)
    assert first(comfy)["framework"] == "comfyui"
    assert "--lowvram" in first(comfy)["do"][0]
    assert "--lowvram" not in first("main.py --lowvram\n" + comfy)["do"][0]
    webui = comfy.replace("ComfyUI\\comfy\\samplers.py", "webui\\modules\\processing.py")
    assert "--medvram" in first(webui)["do"][0]
    assert "--medvram" not in first("webui.py --medvram\n" + webui)["do"][0]


def test_checkpointing_that_is_there_is_not_advised():
    frames = CASES["computed again within the backward pass"][0]
    assert not any("checkpointing" in step for step in first(traceback(frames))["do"])
    without = traceback([frame for frame in frames if "checkpoint" not in frame[0]])
    assert any("gradient_checkpointing=True" in step for step in first(without)["do"])


def test_predictions_and_weights_are_gathered_differently():
    """The trainer gathers weights to save them; eval_accumulation_steps is of no use there."""
    text = traceback([TRAIN, *CASES["FSDP gathers to save"][0][1:]])
    assert first(text)["phase"] == "gather"
    assert not any("eval_accumulation_steps" in step for step in first(text)["do"])


def test_no_batch_is_made_smaller_where_none_is():
    for name in ("the model moves", "a program loads", "weights are loaded", "a program resumes"):
        assert not any("batch (or" in step for step in first(traceback(CASES[name][0]))["do"]), name


def test_passes_without_gradients():
    """No accumulation and no checkpointing; no_grad only in a loop of one's own that shows none."""
    text = traceback(CASES["a loop of one's own to evaluate"][0])
    assert "torch.no_grad()" in first(text)["do"][0]
    for name in ("a loop of one's own to evaluate", "diffusers decodes", "vLLM serves", "an evaluation's results"):
        assert not any("accumulation " in step or "checkpointing" in step for step in first(traceback(CASES[name][0]))["do"])
    decorator = ("torch/utils/_contextlib.py", "decorate_context", "return func(*args, **kwargs)")
    decorated = traceback([decorator, *CASES["a loop of one's own to evaluate"][0]])
    forward = traceback([decorator, *CASES["plain forward"][0]])
    for done in (first("with torch.no_grad():\n" + text), first(decorated), first(forward)):
        assert not any("no_grad" in step for step in done["do"])


def placed(text):
    error = json.loads(explain(text, "-", "--json", "-"))["errors"][0]
    return error["phase"], error["framework"]


def test_the_functions_that_code_calls_tell_when_their_frames_are_cut():
    text = "# CUDA out of memory\n\nTraceback (most recent call last):\n"
    assert placed(text + f'  File "{LIB}diffusers/run.py", line 3, in cell\n    model = load_model(name)\n') == ("load", "diffusers")
    assert placed(text + f'  File "{LIB}vllm/top.py", line 3, in cell\n    x = helper(name)\n') == ("generate", "vllm")


def test_frames_of_a_list_and_of_a_translation():
    listed = f'# CUDA out of memory\n\n  "{LIB}torch/nn/modules/module.py, line 9, _call_impl",\n  "return forward_call(*args)"\n'
    assert placed(listed) == ("forward", "pytorch")
    translated = f'# CUDA out of memory\n\n  Datei "{LIB}transformers/trainer.py", Zeile 9, in evaluate\n'
    assert placed(translated) == ("evaluation", "transformers")


def test_the_framework_of_a_chain_is_that_of_its_last_traceback():
    text = ('Traceback (most recent call last):\n  File "' + LIB + 'torch/serialization.py", line 9, in _save\n    write(x)\nMemoryError\n\n'
            'During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n'
            '  File "' + LIB + 'pytorch_lightning/trainer/trainer.py", line 9, in fit\n    call(x)\n')  # fmt: skip
    assert placed(text) == ("save", "lightning")


def test_the_names_of_vllm_s_processes():
    frame = f'(EngineCore_DP0 pid=12)   File "{LIB}torch/utils/_device.py", line 109, in __torch_function__\n'
    assert placed(f"{frame}(EngineCore_DP0 pid=12) {FULL}\n")[1] == "vllm"


def test_a_box_that_cuts_behind_in_keeps_the_function():
    boxed = f"\u2502 {LIB}deepspeed/runtime/engine.py:1969 in \u2502\n\u2502 backward      \u2502\n\u2502 \u2771 1969   self.step(loss)  \u2502\n"
    assert placed(f"# CUDA out of memory\n\n{boxed}") == ("backward", "deepspeed")


@pytest.mark.parametrize("cut", ["accelerator.p \u2502\n\u2502 y:322 in backward", "accelerator.py:322 \u2502\n\u2502 in backward"])
def test_a_box_that_cuts_a_path_keeps_the_frame(cut):
    boxed = f"\u256d\u2500 Traceback (most recent call last) \u2500\u256e\n\u2502 {LIB}accelerate/{cut} \u2502\n\u2570\u2500\u256f\n{FULL}\n"
    assert placed(boxed) == ("backward", "accelerate")


def test_what_wraps_a_model_stands_below_the_model_s_library():
    frames = "".join(f'  File "{LIB}{path}.py", line 9, in forward\n    call(x)\n'
                     for path in ("accelerate/hooks", "transformers/models/llama/modeling_llama"))  # fmt: skip
    assert placed(f"Traceback (most recent call last):\n{frames}{FULL}\n") == ("forward", "transformers")


def test_ms_swift_from_its_own_folder():
    frame = '  File "/data/ms-swift-3.0/swift/trainers/trainers.py", line 156, in evaluate\n    return super().evaluate(*args)\n'
    assert placed(f"Traceback (most recent call last):\n{frame}{FULL}\n") == ("evaluation", "ms-swift")
