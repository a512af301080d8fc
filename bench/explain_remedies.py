#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is the remedy that a thread ended with among the first two lines of advice?

    bench/explain_remedies.py [--tonnage PATH] [--record RUN] [--show THREAD]

Each case is a public thread about a full card: what helped, written down from the thread before the program was asked; words of
which one must stand in the first two lines of advice; words that must not stand in any line, since the text shows them to be there
already; and an error text in the real error's form, made from the thread's facts (frames, figures where the thread gives them).
--record adds a row to bench/results/explain_remedies.csv. Ends with 1 below 32 of 40, or when something is advised that is there.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results/explain_remedies.csv"
LIB = "/usr/lib/python3.11/site-packages/"


def frames(*rows):
    """A traceback: "path:function:code"; a path without a leading '/' or '.' lies in site-packages when it has a folder."""
    lines = ["Traceback (most recent call last):"]
    for number, row in enumerate(rows, 10):
        path, function, code = row.split(":", 2)
        path = path.removeprefix("./") if path.startswith("./") else path if "/" not in path or path[0] == "/" else LIB + path
        lines += [f'  File "{path}", line {number}, in {function}', f"    {code}"]
    return "\n".join(lines) + "\n"


def full(tried="512.00 MiB", total="39.59 GiB", free="120.19 MiB", held="38.90 GiB", idle="210.00 MiB", gpu=0, others=""):
    return (f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU {gpu} has a total capacity of {total} of which "
            f"{free} is free. {others}Of the allocated memory {held} is allocated by PyTorch, and {idle} is reserved by PyTorch but "
            "unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to "
            "avoid fragmentation.\n")  # fmt: skip


def old(tried="1.56 GiB", total="10.76 GiB", held="9.80 GiB", free="200.81 MiB", reserved="9.90 GiB", gpu=0):
    return (f"RuntimeError: CUDA out of memory. Tried to allocate {tried} (GPU {gpu}; {total} total capacity; {held} already allocated; "
            f"{free} free; {reserved} reserved in total by PyTorch)\n")  # fmt: skip


CALL = "torch/nn/modules/module.py:_call_impl:return forward_call(*args, **kwargs)"
LINEAR = "torch/nn/modules/linear.py:forward:return F.linear(input, self.weight, self.bias)"
TRAIN = "transformers/trainer.py:train:return inner_training_loop("
STEP = "transformers/trainer.py:training_step:loss = self.compute_loss(model, inputs)"
EVALUATE = "transformers/trainer.py:evaluation_loop:all_preds.add(logits)"
CONCAT = "transformers/trainer_pt_utils.py:nested_concat:return torch_pad_and_concatenate(tensors, new_tensors)"
SHARDS = "torch/distributed/fsdp/_state_dict_utils.py:_full_pre_state_dict_hook:_common_unshard_pre_state_dict_hook("
LOAD = "torch/serialization.py:persistent_load:typed_storage = load_tensor(dtype, nbytes, key)"

# thread, remedy, words of which one must be advised, words that must not, text
CASES = [
    ("xlang-ai/instructor-embedding#37", "no_grad around the encode loop", r"no_grad|inference_mode", "",
     frames("./embed.py:encode_all:embeddings.append(model.encode(batch))",
            "InstructorEmbedding/instructor.py:encode:out_features = self.forward(features)", CALL,
            "transformers/models/t5/modeling_t5.py:forward:hidden_states = self.layer_norm(hidden_states)") + full()),
    ("huggingface/transformers#12878", "predictions of all steps stay on the card: eval_accumulation_steps", r"eval_accumulation_steps", "",
     frames("./run_mlm.py:main:metrics = trainer.evaluate()", EVALUATE, CONCAT) + old("8.59 GiB", "15.90 GiB", "13.0 GiB", "1.10 GiB")),
    ("huggingface/transformers#18947", "eval_accumulation_steps", r"eval_accumulation_steps", "",
     frames("./train.py:<module>:trainer.train()", TRAIN, "transformers/trainer.py:_maybe_log_save_evaluate:metrics = self.evaluate()",
            EVALUATE, CONCAT) + full("2.34 GiB")),
    ("huggingface/transformers#25313", "eval_accumulation_steps", r"eval_accumulation_steps", r"rank0_only",
     frames("./finetune.py:main:trainer.train()", TRAIN, EVALUATE,
            "transformers/trainer.py:_nested_gather:return distributed_concat(tensors)",
            "transformers/trainer_pt_utils.py:distributed_concat:concat = torch.cat(output_tensors, dim=0)") + full("5.04 GiB", gpu=3)),
    ("ultralytics/yolov3#46", "a smaller batch in the test that follows an epoch", r"(eval|valid|test|here).*batch|batch.*(eval|valid|test|here)", "",
     frames("./train.py:main:mAP, R, P = test.test(opt.cfg, weights=latest)", "./val.py:evaluate:output = model(imgs)", CALL,
            "torch/nn/modules/conv.py:forward:return F.conv2d(input, self.weight, self.bias)")
     + old("169.00 MiB", "7.93 GiB", "6.90 GiB", "90.5 MiB", "7.10 GiB")),
    ("junzhezhang/shape-inversion#12", "N x N distances: in chunks", r"[Cc]hunk", "",
     frames("./eval_treegan.py:compute:dist = distChamfer(sample, ref)",
            "./external/chamfer.py:forward:P = rx.transpose(2, 1) + ry - 2 * zz") + full("8.94 GiB", "11.91 GiB", "1.50 GiB", "9.9 GiB")),
    ("MIC-DKFZ/nnUNet#122", "half precision", r"float16|fp16|autocast|16 bits|mixed|half", "",
     frames("./nnunet/run/run_training.py:main:trainer.run_training()",
            "./nnunet/training/network_training/nnUNetTrainer.py:run_iteration:output = self.network(data)", CALL,
            "torch/nn/modules/conv.py:forward:return F.conv3d(input, self.weight)") + old("126.00 MiB", "10.76 GiB", "9.77 GiB", "59.5 MiB")),
    ("pytorch/pytorch#35901", "large block split by small ones: allocator settings", r"expandable_segments|max_split_size", "",
     frames("./main.py:run:out = model(x)", CALL, LINEAR) + old("1.02 GiB", "10.76 GiB", "5.01 GiB", "520.81 MiB", "9.40 GiB")),
    ("huggingface/transformers#23386", "full fp32 state dict gathered on each card: gather on the host", r"offload_to_cpu", "",
     frames("./train.py:train:safe_save_model_for_hf_trainer(trainer=trainer, output_dir=out)",
            "./train.py:safe_save_model_for_hf_trainer:state_dict = trainer.model.state_dict()", SHARDS) + full("2.51 GiB", "31.75 GiB")),
    ("meta-llama/llama-cookbook#626", "save_pretrained gathers everything: gather on the host, or in shards", r"offload_to_cpu|SHARDED_STATE_DICT", "",
     frames("./finetuning.py:main:results = train(", "./train_utils.py:train:model.save_pretrained(train_config.output_dir)",
            "peft/peft_model.py:save_pretrained:output_state_dict = get_peft_model_state_dict(", SHARDS) + full("448.00 MiB", "79.15 GiB", held="77.9 GiB")),
    ("haotian-liu/LLaVA#177", "state dict at the save: gather on the host", r"offload_to_cpu", "",
     frames("./llava/train/train.py:train:safe_save_model_for_hf_trainer(trainer=trainer)", "transformers/trainer.py:_save:state_dict = self.model.state_dict()",
            SHARDS) + full("172.00 MiB")),
    ("tatsu-lab/stanford_alpaca#65", "full state dict on the card: offload_to_cpu", r"offload_to_cpu", "",
     "/lib/python3.9/site-packages/torch/distributed/fsdp/_state_dict_utils.py:2224: UserWarning: Failed to clone() tensor with name "
     "lm_head.weight. Error: CUDA out of memory. Tried to allocate 502.00 MiB (GPU 1; 39.59 GiB total capacity; 35.54 GiB already allocated; "
     "276.19 MiB free; 37.22 GiB reserved in total by PyTorch)\n"),
    ("deepspeedai/DeepSpeed#7021", "the whole model is put on the card at initialize: make it within zero.Init", r"zero\.Init", "",
     frames("./llama_inference.py:<module>:ds_engine = deepspeed.initialize(model=model, config_params=ds_config)[0]",
            "deepspeed/__init__.py:initialize:engine = DeepSpeedEngine(args=args,",
            "deepspeed/runtime/engine.py:_configure_distributed_model:self.module.to(self.device)",
            "torch/nn/modules/module.py:convert:return t.to(device)") + full("1002.00 MiB", "23.6 GiB", held="22.9 GiB")),
    ("marcoamonteiro/pi-GAN#22", "every rank opens a context on card 0: torch.cuda.set_device(rank)", r"set_device", "",
     frames("./train.py:train:generator_ddp = DDP(generator, device_ids=[rank])") + full(
         "20.00 MiB", "10.76 GiB", "15.44 MiB", "4.90 GiB", "100.00 MiB",
         others="".join(f"Process {2200 + i} has 823.00 MiB memory in use. " for i in range(6)))),
    ("huggingface/accelerate#1471", "load_state puts the checkpoint on the card: map to the host", r"map_location", "",
     frames("./train.py:main:accelerator.load_state(args.resume_from_checkpoint)", "accelerate/accelerator.py:load_state:load_accelerator_state(",
            "torch/serialization.py:load:return _load(opened_zipfile") + full()),
    ("huggingface/transformers#3730", "optimizer state loaded to each card: map to the host", r'map_location="cpu"', "",
     "[rank5]: " + frames("./run.py:main:trainer.train(model_path=checkpoint)",
                          "transformers/trainer.py:_load_optimizer_and_scheduler:optimizer.load_state_dict(torch.load(path))", LOAD).replace("\n", "\n[rank5]: ")
     + full(gpu=5)),
    ("huggingface/accelerate#3612", "each rank loads the whole model: load it once on the computer, shard from there",
     r"device_map=\"cpu\"|cpu_ram_efficient_loading|low_cpu_mem|zero\.Init", "",
     "[rank3]: " + frames("./sft.py:main:model = AutoModelForCausalLM.from_pretrained(name)",
                          "transformers/modeling_utils.py:from_pretrained:model = cls._load_pretrained_model(").replace("\n", "\n[rank3]: ") + full(gpu=3)),
    ("huggingface/transformers#279", "DataParallel gathers the outputs on card 0", r"DistributedDataParallel|loss inside the module", "",
     frames("./run_lm_finetuning.py:main:loss = model(input_ids, segment_ids)", CALL,
            "torch/nn/parallel/data_parallel.py:forward:return self.gather(outputs, self.output_device)",
            "torch/nn/parallel/scatter_gather.py:gather:res = gather_map(outputs)") + old("3.70 GiB", "15.90 GiB", "13.9 GiB", "1.44 GiB")),
    ("princeton-vl/RAFT#33", "DataParallel gathers the outputs on card 0", r"DistributedDataParallel|loss inside the module", "",
     frames("./train.py:train:flow_predictions = model(image1, image2, iters=args.iters)", CALL,
            "torch/nn/parallel/data_parallel.py:forward:outputs = self.parallel_apply(replicas, inputs, kwargs)", CALL) + old()),
    ("PruneTruong/DenseMatching#10", "DataParallel: the loss into the module", r"DistributedDataParallel|loss inside the module", "",
     frames("./training.py:cycle_dataset:loss, stats = self.actor(data)", CALL,
            "torch/nn/parallel/data_parallel.py:forward:return self.gather(outputs, self.output_device)") + old("220.00 MiB")),
    ("bitsandbytes-foundation/bitsandbytes#102", "8-bit Adam", r"8-?bit", "",
     frames("./train_dreambooth.py:main:optimizer.step()", "accelerate/optimizer.py:step:self.optimizer.step(closure)",
            "torch/optim/adamw.py:step:state['exp_avg_sq'] = torch.zeros_like(p)") + full("20.00 MiB", "23.65 GiB", "12.0 MiB", "22.80 GiB")),
    ("axolotl#1181", "no_grad in an evaluation loop of one's own", r"no_grad|inference_mode", "",
     frames("./my_eval.py:evaluate:outputs = model(**batch)", CALL, "peft/peft_model.py:forward:return self.base_model(",
            "transformers/models/llama/modeling_llama.py:forward:logits = logits.float()") + full()),
    ("InternLM/InternLM#79", ".cuda() undoes device_map", r"leave \.cuda\(\)", r'Load with from_pretrained\(\.\.\., device_map',
     frames('./demo.py:<module>:model = AutoModelForCausalLM.from_pretrained(name, device_map="auto", trust_remote_code=True).cuda()',
            "torch/nn/modules/module.py:cuda:return self._apply(lambda t: t.cuda(device))",
            "torch/nn/modules/module.py:_apply:param_applied = fn(param)") + full("172.00 MiB", "23.69 GiB", held="22.9 GiB")),
    ("meta-llama/llama#67", "cache for 32 sequences: a smaller max_batch_size", r"max_batch_size", "",
     frames("./example.py:load:model = Transformer(model_args)", "./llama/model.py:__init__:self.cache_k = torch.zeros((args.max_batch_size, args.max_seq_len, ",)
     + old("64.00 MiB", "14.76 GiB", "13.8 GiB", "40.0 MiB", "13.85 GiB")),
    ("huggingface/transformers#22123", "optimizer loaded to the card on resuming: map to the host", r'map_location="cpu"', "",
     frames("./run_clm.py:main:trainer.train(resume_from_checkpoint=checkpoint)", TRAIN,
            "transformers/trainer.py:_load_optimizer_and_scheduler:torch.load(os.path.join(checkpoint, OPTIMIZER_NAME))", LOAD) + full()),
    ("karpathy/nanoGPT#236", "the loaded checkpoint stays referenced on the card", r'map_location="cpu"|del it', "",
     frames("./train.py:<module>:optimizer.load_state_dict(checkpoint['optimizer'])",
            "torch/optim/optimizer.py:load_state_dict:value = _process_value(value)") + old("20.00 MiB", "7.93 GiB", "7.0 GiB", "10.8 MiB", "7.10 GiB")),
    ("vllm-project/vllm#783", "others hold the card: a smaller share of it, or a free card", r"gpu-memory-utilization|who holds", "",
     frames("./app.py:<module>:llm = LLM(model='facebook/opt-125m')", "vllm/entrypoints/llm.py:__init__:self.llm_engine = LLMEngine.from_engine_args(",
            "vllm/worker/cache_engine.py:allocate_gpu_cache:key_blocks = torch.empty(") + full("180.00 MiB", "22.04 GiB", "100.0 MiB", "6.3 GiB", "40.00 MiB")),
    ("vllm-project/vllm#2248", "no room for cache blocks: more of the card, or a shorter context", r"gpu-memory-utilization|max-model-len", "",
     "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"),
    ("ovg-project/kvcached#110", "less is free at the start than wanted", r"gpu-memory-utilization", "",
     "ValueError: Free memory on device (21.7/79.25 GiB) on startup is less than desired GPU memory utilization (0.5, 39.63 GiB). Decrease GPU "
     "memory utilization or reduce GPU memory used by other processes.\n"),
    ("huggingface/text-generation-inference#1354", "load in bfloat16, shard", r"num-shard|bfloat16", "",
     frames("text_generation_server/cli.py:serve:server.serve(model_id, revision, sharded)",
            "text_generation_server/models/__init__.py:get_model:return FlashLlama(",
            "text_generation_server/utils/weights.py:get_tensor:tensor = tensor.to(device=self.device)") + full("500.00 MiB", "22.2 GiB", held="21.2 GiB")),
    ("abetlen/llama-cpp-python#1944", "the cache on one card: a shorter context", r"-c N|n_ctx", "",
     "llama_kv_cache_init: n_ctx = 163840\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 201496.00 MiB on device 0: cudaMalloc failed: out of memory\n"
     "llama_kv_cache_init: failed to allocate buffer for kv cache\nllama_new_context_with_model: llama_kv_cache_init() failed for self-attention cache\n"),
    ("ollama/ollama#790", "fewer layers on the card", r"fewer layers|num_gpu|-ngl", "",
     "llama_new_context_with_model: compute buffer total size = 157.94 MB\nCUDA error 2 at /go/src/github.com/jmorganca/ollama/llm/llama.cpp/gguf/ggml-cuda.cu:7233: "
     "out of memory\ncurrent device: 0\n"),
    ("AUTOMATIC1111/stable-diffusion-webui#5546", "--medvram", r"--medvram", "",
     frames(r"C:\sd\stable-diffusion-webui\modules\txt2img.py|txt2img|processed = process_images(p)".replace(":", "§").replace("|", ":"),
            ).replace("§", ":") + old("2.25 GiB", "6.00 GiB", "3.61 GiB", "0 bytes", "5.30 GiB")),
    ("comfyanonymous/ComfyUI#3278", "browser and desktop hold 2 GB: free the card, or leave room", r"who holds|reserve-vram|lowvram", "",
     frames("/home/u/ComfyUI/execution.py:recursive_execute:output_data, output_ui = get_output_data(obj, input_data_all)",
            "/home/u/ComfyUI/comfy/samplers.py:sample:samples = sampler.sample(") +
     "torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 20.70 GiB\n"
     "Requested               : 1.20 GiB\nDevice limit            : 23.69 GiB\nFree (according to CUDA): 20.00 MiB\n"
     "PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB\n"),
    ("flymin/MagicDrive-V2#21", "decoding by the VAE: in tiles", r"tiling|pieces|tiles", "",
     frames("./scripts/inference.py:main:samples = vae.decode(samples.to(dtype), num_frames=num_frames)",
            "./magicdrive/models/vae/vae_cogvideox.py:decode:return self.module.decode(z)",
            "diffusers/models/autoencoders/autoencoder_kl_cogvideox.py:decode:decoded = self._decode(z).sample", CALL) + full("3.9 GiB", "95.0 GiB", "2.1 GiB", "91.5 GiB")),
    ("unslothai/unsloth#3896", "pipe.to(\"cuda\") before the offload: offload instead", r"enable_model_cpu_offload", "",
     frames('./run.py:<module>:pipe.to("cuda")', "diffusers/pipelines/pipeline_utils.py:to:module.to(device, dtype)",
            "torch/nn/modules/module.py:convert:return t.to(device)") + full("72.00 MiB", "14.74 GiB", "20.0 MiB", "14.30 GiB", "40.00 MiB")),
    ("run-llama/llama_index#8743", "the watermark", r"WATERMARK", "",
     "RuntimeError: MPS backend out of memory (MPS allocated: 15.96 GB, other allocations: 1.93 GB, max allowed: 18.13 GB). Tried to allocate "
     "296.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).\n"),
    ("pytorch/pytorch#5040", "--shm-size", r"shm-size", "",
     "RuntimeError: DataLoader worker (pid 13) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n"),
    ("open-mmlab/mmdetection#1581", "many boxes: assign on the computer", r"gpu_assign_thr", "",
     frames("./tools/train.py:main:train_detector(", "mmcv/runner/runner.py:train:outputs = self.batch_processor(",
            "./mmdet/models/detectors/two_stage.py:forward_train:assign_result = bbox_assigner.assign(",
            "./mmdet/core/bbox/assigners/max_iou_assigner.py:assign:overlaps = bbox_overlaps(gt_bboxes, bboxes)") + old("1.24 GiB")),
    ("Project-MONAI/MONAI#854", "the stitched output on the host", r'device="cpu"', "",
     frames("./train.py:main:val_outputs = sliding_window_inference(val_images, roi_size, sw_batch_size, model)",
            "monai/inferers/utils.py:sliding_window_inference:output_rois.append(seg_prob)") + old("2.70 GiB")),
    ("MIC-DKFZ/nnUNet#359", "the card is busy: another one by CUDA_VISIBLE_DEVICES", r"CUDA_VISIBLE_DEVICES", "",
     frames("./nnunet/run/run_training.py:main:trainer.initialize(not validation_only)",
            "./nnunet/training/network_training/nnUNetTrainerV2.py:initialize_network:self.network.cuda()",
            "torch/nn/modules/module.py:_apply:param_applied = fn(param)") + "RuntimeError: CUDA error: out of memory\n"),
]  # fmt: skip


def explain(tonnage, text):
    done = subprocess.run([tonnage, "explain", "-", "--json", "-"], input=text.encode(), capture_output=True, timeout=60, check=True)
    errors = json.loads(done.stdout)["errors"]
    return errors[0] if errors else None


def record(run, count):
    rows = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    rows = [row for row in rows if row["run"] != run] + [{"run": run, **count}]
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["run", "threads", "first_two", "first", "already_there"])
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tonnage", default=os.environ.get("TONNAGE", str(HERE.parent / "build/bin/tonnage")))
    parser.add_argument("--record", metavar="RUN")
    parser.add_argument("--show", help="print the text and the answer for one thread")
    arguments = parser.parse_args()
    count = {"threads": 0, "first_two": 0, "first": 0, "already_there": 0}
    for thread, remedy, wanted, unwanted, text in CASES:
        if arguments.show not in (None, thread):
            continue
        error = explain(arguments.tonnage, text)
        advice = error["do"] if error else []
        count["threads"] += 1
        count["first"] += bool(advice and re.search(wanted, advice[0]))
        good = any(re.search(wanted, line) for line in advice[:2])
        count["first_two"] += good
        there = bool(unwanted) and any(re.search(unwanted, line) for line in advice)
        count["already_there"] += there
        if not good or there or arguments.show:
            print(f"{thread}: {remedy}")
            print(*(f"    {line}" for line in advice), sep="\n")
        if arguments.show:
            print(text, json.dumps(error, indent=2), sep="\n---\n")
    print(f"the remedy is among the first two lines in {count['first_two']} of {count['threads']}, the first in {count['first']}; "
          f"advised what is there: {count['already_there']}")  # fmt: skip
    if arguments.record:
        record(arguments.record, count)
    return 1 if count["first_two"] < 0.8 * count["threads"] or count["already_there"] else 0


if __name__ == "__main__":
    sys.exit(main())
