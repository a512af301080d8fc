from torch.utils.data import Dataset
from data import Tokens
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Lines(Dataset):
    def __init__(self):
        self.tokens = Tokens(1600, 512, 50257)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        tokens = self.tokens[index]
        return {"input_ids": tokens, "labels": tokens.clone()}


model = GPT2LMHeadModel(GPT2Config())
arguments = TrainingArguments(
    output_dir="out", per_device_train_batch_size=16, num_train_epochs=1, logging_steps=10, save_strategy="no", report_to="none"
)
trainer = Trainer(model=model, args=arguments, train_dataset=Lines())
trainer.train()
