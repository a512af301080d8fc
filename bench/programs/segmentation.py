# SPDX-License-Identifier: Apache-2.0
"""Semantic segmentation in training: torchvision's DeepLab v3, a U-Net of segmentation-models-pytorch, or MONAI's Swin UNETR."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["torchvision", "smp", "monai"])
parser.add_argument("--batch", type=int, default=8)
options = parser.parse_args()


def torchvision_deeplab():
    import torchvision

    net = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21, aux_loss=True)
    loss_of = torch.nn.CrossEntropyLoss(ignore_index=255)

    def loss(out, target):
        return loss_of(out["out"], target) + 0.5 * loss_of(out["aux"], target)

    return net, loss, (3, 480, 480), (480, 480), 21


def smp_unet():
    import segmentation_models_pytorch as smp

    net = smp.Unet("resnet34", encoder_weights=None, classes=4)
    return net, smp.losses.DiceLoss(mode="multiclass"), (3, 512, 512), (512, 512), 4


def monai_swin():
    from monai.losses import DiceCELoss
    from monai.networks.nets import SwinUNETR

    net = SwinUNETR(in_channels=1, out_channels=14, feature_size=48, use_checkpoint=True)
    return net, DiceCELoss(to_onehot_y=True, softmax=True), (1, 96, 96, 96), (1, 96, 96, 96), 14


net, loss_of, shape, target_shape, classes = {"torchvision": torchvision_deeplab, "smp": smp_unet, "monai": monai_swin}[options.kind]()
net = net.cuda().train()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
for step in range(8):
    pictures = torch.rand(options.batch, *shape, device="cuda")
    target = torch.randint(0, classes, (options.batch, *target_shape), device="cuda")
    loss = loss_of(net(pictures), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), flush=True)
net.eval()
with torch.no_grad():
    net(torch.rand(1, *shape, device="cuda"))
