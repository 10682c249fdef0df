"""Parts that the published recipes of several methods share."""

from contrastive_core.messages import N_
from contrastive_core.storage.json_files import JsonObject

LIGHTLY: JsonObject = {  # github.com/lightly-ai/lightly, cifar10_benchmark.py: ResNet-18, 200 epochs, kNN 78 to 87 %
    "source": N_("lightly's benchmark on CIFAR-10 with ResNet-18"),
    "optimizer": "sgd",
    "lr": 0.06,
    "per": 128,
    "weight_decay": 5e-4,
    "batch_size": 512,
    "epochs": 200,
    "views": {"crop_low": 0.08, "hue": 0.1},  # SimCLR's (appendix B.9): strength 0.5, no blur
}
MOCO_DEMO: JsonObject = {  # the authors' notebook for CIFAR-10, linked in github.com/facebookresearch/moco
    "source": N_("MoCo's authors on CIFAR-10 with ResNet-18"),
    "optimizer": "sgd",
    "lr": 0.06,
    "per": 512,
    "weight_decay": 5e-4,
    "batch_size": 512,
    "epochs": 200,
    "views": {"crop_low": 0.2, "hue": 0.1},
    "loss_knobs": {"temperature": 0.1},
}
INST_DISC_VIEWS: JsonObject = {"crop_low": 0.2, "jitter": 1.0, "hue": 0.4}  # 1805.01978's code, and MoCo v1's
SIMCLR_VIEWS: JsonObject = {  # 2002.05709, appendix A: strength 1
    "crop_low": 0.08, "brightness": 0.8, "contrast": 0.8, "saturation": 0.8, "hue": 0.2, "blur": 0.5
}  # fmt: skip
MOCO_V2_VIEWS: JsonObject = {"crop_low": 0.2, "hue": 0.1, "blur": 0.5}  # 2003.04297, and SimSiam's
BYOL_VIEWS: JsonObject = {"crop_low": 0.08, "views": "byol"}  # 2006.07733, appendix B
LARS: JsonObject = {"optimizer": "lars", "per": 256, "warmup": 10.0, "batch_size": 4096}
