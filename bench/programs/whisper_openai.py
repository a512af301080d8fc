# SPDX-License-Identifier: Apache-2.0
"""openai-whisper: transcribes two minutes of noise with the small model."""

import sys

import numpy
import torch
import whisper

# The published dimensions of "small".
small = whisper.model.ModelDimensions(
    n_mels=80, n_audio_ctx=1500, n_audio_state=768, n_audio_head=12, n_audio_layer=12,
    n_vocab=51865, n_text_ctx=448, n_text_state=768, n_text_head=12, n_text_layer=12)  # fmt: skip
model = whisper.model.Whisper(small).cuda().eval()
sound = numpy.random.default_rng(0).normal(0, 0.1, 120 * 16000).astype(numpy.float32)
beams = None if "--greedy" in sys.argv else 5
result = model.transcribe(sound, language="en", beam_size=beams, temperature=0.0)
print(len(result["segments"]), "segments", torch.cuda.max_memory_allocated() >> 20, "MiB")
