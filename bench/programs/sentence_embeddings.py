# SPDX-License-Identifier: Apache-2.0
"""sentence-transformers: its trainer on pairs, in-batch negatives, BERT-base's size."""

from datasets import Dataset
from made import save_tokenizer, texts
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import MultipleNegativesRankingLoss
from transformers import BertConfig, BertModel

BertModel(BertConfig()).save_pretrained("bert")
save_tokenizer("bert")
model = SentenceTransformer("bert", device="cuda")
model.max_seq_length = 128
data = Dataset.from_dict({"anchor": texts(640, 120), "positive": texts(640, 120, 1)})
settings = SentenceTransformerTrainingArguments(
    "out", per_device_train_batch_size=64, max_steps=10, report_to=[], logging_steps=2, save_strategy="no"
)
trainer = SentenceTransformerTrainer(model, settings, train_dataset=data, loss=MultipleNegativesRankingLoss(model))
trainer.train()
print(model.encode(texts(100, 50)).shape)
