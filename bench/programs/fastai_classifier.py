# SPDX-License-Identifier: Apache-2.0
"""fastai: its learner on folders of pictures, ResNet-50, fp16, one cycle."""

import pathlib
import subprocess
import sys

from fastai.vision.all import ImageDataLoaders, Resize, accuracy, resnet50, vision_learner

subprocess.run([sys.executable, pathlib.Path(__file__).with_name("pictures.py"), "folders", "pets"], check=True)
loaders = ImageDataLoaders.from_folder("pets", valid_pct=0.25, seed=1, item_tfms=Resize(224), bs=32, num_workers=0)
learner = vision_learner(loaders, resnet50, pretrained=False, metrics=accuracy).to_fp16()
learner.fit_one_cycle(2, 1e-3)
print(learner.validate())
