"""The API of nvitop, a monitor that asks NVML for everything."""
import nvitop
import torch

held = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
device = nvitop.Device(0)
print(device.name(), device.memory_used_human(), device.memory_total_human(), device.cuda_compute_capability())
assert device.memory_used() >= 256 << 20
for pid, process in device.processes().items():
    print(pid, process.gpu_memory_human())
