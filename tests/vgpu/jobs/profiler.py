import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 6).cuda()
optimizer = torch.optim.AdamW(model.parameters())

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=schedule(wait=1, warmup=1, active=2),
    profile_memory=True,
    record_shapes=True,
    on_trace_ready=lambda p: p.export_chrome_trace("trace.json"),
) as profiler:
    for step in range(5):
        with record_function("step"):
            data = torch.rand(32, 256, 512, device="cuda")
            model(data).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        profiler.step()
print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=5))
