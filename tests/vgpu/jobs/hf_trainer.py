import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Lines(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        tokens = torch.randint(50257, (256,))
        return {"input_ids": tokens, "labels": tokens.clone()}


model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=512, n_head=8))
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=16,
    num_train_epochs=1,
    logging_steps=1,
    save_strategy="epoch",
    report_to="none",
)
trainer = Trainer(model=model, args=arguments, train_dataset=Lines(), eval_dataset=Lines())
trainer.train()
trainer.save_model("out/final")
