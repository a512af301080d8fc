import torch
import torchvision


class Prefetcher:
    """Copies the next batch on a side stream while the current one is worked on."""

    def __init__(self, batches):
        self.batches = iter(batches)
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        batch = next(self.batches, None)
        if batch is None:
            self.next = None
            return
        with torch.cuda.stream(self.stream):
            self.next = [tensor.cuda(non_blocking=True) for tensor in batch]

    def __iter__(self):
        while self.next is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.next
            for tensor in batch:
                tensor.record_stream(torch.cuda.current_stream())
            self.preload()
            yield batch


batches = [(torch.rand(64, 3, 160, 160).pin_memory(), torch.randint(10, (64,)).pin_memory()) for _ in range(5)]
model = torchvision.models.resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for images, labels in Prefetcher(batches):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
