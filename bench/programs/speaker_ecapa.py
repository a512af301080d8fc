# SPDX-License-Identifier: Apache-2.0
"""speechbrain: a Brain that trains ECAPA-TDNN on three seconds of sound, 32 a batch."""

import speechbrain as sb
import torch
from speechbrain.lobes.features import Fbank
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN, Classifier
from speechbrain.nnet.losses import LogSoftmaxWrapper, AdditiveAngularMargin


class Speakers(sb.Brain):
    def compute_forward(self, batch, stage):
        features = self.modules.features(batch[0].to(self.device))
        return self.modules.classifier(self.modules.net(features))

    def compute_objectives(self, guesses, batch, stage):
        return self.hparams.loss(guesses, batch[1].to(self.device).unsqueeze(1), torch.ones(len(batch[1]), device=self.device))


modules = {"features": Fbank(n_mels=80), "net": ECAPA_TDNN(80), "classifier": Classifier(192, out_neurons=7205)}
brain = Speakers(modules, lambda parameters: torch.optim.Adam(parameters, 1e-3), run_opts={"device": "cuda"},
                 hparams={"loss": LogSoftmaxWrapper(AdditiveAngularMargin(margin=0.2, scale=30))})  # fmt: skip
rows = [(torch.randn(48000), torch.tensor(number)) for number in range(256)]
brain.fit(range(1), torch.utils.data.DataLoader(rows, 32))
