# %%
%matplotlib --list
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
# %%
config = GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=1000, n_positions=64)
model = GPT2LMHeadModel(config)
# %%
class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        ids = torch.arange(64) % 1000
        return {"input_ids": ids, "labels": ids}
# %%
arguments = TrainingArguments("out", per_device_train_batch_size=8, num_train_epochs=1, report_to=[], save_strategy="no")
trainer = Trainer(model, arguments, train_dataset=Texts())
trainer.train();
# %%
model.generate(torch.zeros(1, 4, dtype=torch.long, device="cuda"), max_new_tokens=8);
print("generated")
