"""Parts that the published recipes of several methods share."""

from contrastive_core.messages import N_
from contrastive_core.storage.json_files import JsonObject

# Values are those of the file or section named beside them, read there or, for what was out of reach, in forks and
# READMEs that quote it; a line says "unchecked" where neither was found.
LIGHTLY: JsonObject = {  # github.com/lightly-ai/lightly, cifar10_benchmark.py: ResNet-18, 200 epochs, kNN 78 to 87 %
    "source": N_("lightly's benchmark on CIFAR-10 with ResNet-18"),
    "optimizer": "sgd",
    "lr": 0.06,
    "per": 128,
    "weight_decay": 5e-4,
    "batch_size": 512,
    "epochs": 200,
    "views": {"crop_low": 0.08, "hue": 0.1},  # lightly's SimCLRCollateFunction: strength 0.5; no blur
}
MOCO_DEMO: JsonObject = {  # github.com/facebookresearch/moco, colab/moco_cifar10_demo.ipynb; crops are torchvision's
    "source": N_("MoCo's authors on CIFAR-10 with ResNet-18"),
    "optimizer": "sgd",
    "lr": 0.06,
    "per": 512,
    "weight_decay": 5e-4,
    "batch_size": 512,
    "epochs": 200,
    "views": {"crop_low": 0.08, "hue": 0.1},
    "loss_knobs": {"temperature": 0.1},
}
MOCO_DEMO_KNOBS: JsonObject = {"dim": 128, "queue": 4096, "momentum": 0.99, "bn_splits": 8}
MOCO_IMAGENET: JsonObject = {  # github.com/facebookresearch/moco, README.md and main_moco.py
    "optimizer": "sgd", "lr": 0.03, "per": 256, "weight_decay": 1e-4, "batch_size": 256, "epochs": 200
}  # fmt: skip
MOCO_KNOBS: JsonObject = {"dim": 128, "queue": 65536, "momentum": 0.999}  # main_moco.py
# github.com/zhirongw/lemniscate.pytorch, cifar.py; mangye16/Unsupervised_Embedding_Learning, demo_seen.py; MoCo v1
INST_DISC_VIEWS: JsonObject = {"crop_low": 0.2, "jitter": 1.0, "hue": 0.4}
SIMSIAM_CIFAR_VIEWS: JsonObject = {"crop_low": 0.2, "hue": 0.1}  # as on ImageNet, without blur; SupContrast's too
SIMCLR_VIEWS: JsonObject = {  # 2002.05709, appendix A: strength 1
    "crop_low": 0.08, "brightness": 0.8, "contrast": 0.8, "saturation": 0.8, "hue": 0.2, "blur": 0.5
}  # fmt: skip
MOCO_V2_VIEWS: JsonObject = {"crop_low": 0.2, "hue": 0.1, "blur": 0.5}  # 2003.04297, and SimSiam's
BYOL_VIEWS: JsonObject = {"crop_low": 0.08, "views": "byol"}  # 2006.07733, appendix B
# Rate per 256 images and 10 epochs of warm-up: google-research/simclr, deepmind-research/byol/configs/byol.py,
# moco-v3/main_moco.py, vicreg/main_vicreg.py, barlowtwins/README.md (weights), swav/scripts (4.8 at 4,096)
LARS: JsonObject = {"optimizer": "lars", "per": 256, "warmup": 10.0, "batch_size": 4096}
