# SPDX-License-Identifier: Apache-2.0
"""On a virtual GPU a generation ends at its greatest length.

transformers asks the device whether all sequences are finished; no kernel runs, so the answer would always be no and
the cache would grow for ever. That the greatest length is reached, where a real run ends at the latest, is known on the
host: that much is answered here. A sequence that a real model would end earlier runs to that length.

vLLM's newer runner has a kernel count how many tokens each request got in a step: one, or none while its prompt is not read whole. Without an answer
no request would ever end. Which it is the host knows.
"""

import functools

from . import guard, imports
from .state import state


class _Generation:
    """The one that runs."""

    __slots__ = ("at_end",)

    def __init__(self):
        self.at_end = False  # its greatest length is reached


_generation = _Generation()


def install():
    """Waits for transformers."""
    imports.watch("transformers.generation.stopping_criteria", guard.guarded(_watch_length))
    imports.watch("transformers.generation.utils", guard.guarded(_answer))
    imports.watch("vllm.v1.worker.gpu.sample.sampler", guard.guarded(_watch_sampler))


def _watch_length(module):
    cls = module.MaxLengthCriteria
    original = cls.__call__

    @functools.wraps(original)
    def __call__(self, input_ids, *args, **kwargs):
        _generation.at_end = input_ids.shape[-1] >= self.max_length
        return original(self, input_ids, *args, **kwargs)

    cls.__call__ = __call__


def _answer(module):
    cls = module.GenerationMixin
    original = cls._has_unfinished_sequences

    @functools.wraps(original)
    def _has_unfinished_sequences(self, *args, **kwargs):
        at_end, _generation.at_end = _generation.at_end, False
        return original(self, *args, **kwargs) and not at_end

    cls._has_unfinished_sequences = _has_unfinished_sequences


def _watch_sampler(module):
    cls = module.Sampler
    original = cls.__call__

    @functools.wraps(original)
    def __call__(self, logits, input_batch, *args, **kwargs):
        output = original(self, logits, input_batch, *args, **kwargs)
        _count_sampled(output, input_batch)
        return output

    cls.__call__ = __call__


@guard.guarded
def _count_sampled(output, batch):
    starts = batch.query_start_loc_np.tolist()
    rows = zip(batch.num_computed_prefill_tokens_np.tolist(), batch.prefill_len_np.tolist(), starts, starts[1:])
    counts = [int(computed + end - start >= prompt) for computed, prompt, start, end in rows]
    sampled = output.sampled_token_ids
    if output.num_sampled is not None and sampled.is_cuda and len(counts) >= output.num_sampled.shape[0]:
        output.num_sampled.copy_(state.torch.tensor(counts[:output.num_sampled.shape[0]]))
