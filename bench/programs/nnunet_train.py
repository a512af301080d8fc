# SPDX-License-Identifier: Apache-2.0
"""nnU-Net: six made volumes, its own planning for a card of 8 GB, then `nnUNetv2_train` in 3d_fullres for one epoch."""

import json
import os
import pathlib
import subprocess

import nibabel
import numpy

for name in ("raw", "preprocessed", "results"):
    os.environ[f"nnUNet_{name}"] = str(pathlib.Path(name).resolve())
os.environ |= {"nnUNet_n_proc_DA": "1", "nnUNet_compile": "f", "nnUNet_def_n_proc": "1"}
data = pathlib.Path("raw/Dataset001_Made")
choose = numpy.random.default_rng(0)
for folder in ("imagesTr", "labelsTr"):
    (data / folder).mkdir(parents=True)
for number in range(6):
    volume = choose.normal(size=(160, 160, 160)).astype(numpy.float32)
    label = numpy.zeros(volume.shape, numpy.uint8)
    label[40:100, 40:100, 40:100] = 1
    nibabel.save(nibabel.Nifti1Image(volume, numpy.eye(4)), data / f"imagesTr/case{number}_0000.nii.gz")
    nibabel.save(nibabel.Nifti1Image(label, numpy.eye(4)), data / f"labelsTr/case{number}.nii.gz")
about = {"channel_names": {"0": "CT"}, "labels": {"background": 0, "organ": 1}, "numTraining": 6, "file_ending": ".nii.gz"}
(data / "dataset.json").write_text(json.dumps(about))
subprocess.run(["nnUNetv2_plan_and_preprocess", "-d", "1", "-c", "3d_fullres", "-np", "1", "-npfp", "1"], check=True)
os.execvp("nnUNetv2_train", ["nnUNetv2_train", "1", "3d_fullres", "all", "-tr", "nnUNetTrainer_1epoch"])
