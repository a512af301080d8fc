"""What monitoring tools ask: the same figures through NVML and through PyTorch."""
import os

import pynvml
import torch

held = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
pynvml.nvmlInit()
assert pynvml.nvmlDeviceGetCount() == 1
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
print(pynvml.nvmlDeviceGetName(handle), pynvml.nvmlSystemGetDriverVersion())
memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
free, total = torch.cuda.mem_get_info()
assert memory.free == free, (memory.free, free)
assert memory.total == total and memory.used == total - free, (memory.total, memory.used, total)
mine = [p for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle) if p.pid == os.getpid()]
assert len(mine) == 1 and mine[0].usedGpuMemory >= 512 << 20, mine
print("temperature", pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))
print(torch.cuda.memory_summary(abbreviated=True))
print(torch.cuda.list_gpu_processes())
pynvml.nvmlShutdown()
