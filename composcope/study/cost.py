"""What a node of the study takes: passes of its network, counted, times the operations of a pass,
counted too.

    minutes = passes * operations of one pass / (60 * operations a second)

A pass is one evaluation of the network on one image, or on one patch of a local one; training takes
three of each view (one forward, two backward)."""

from functools import cache

from composcope.runs.config import RECIPES, Config
from composcope.study.table import GUIDANCE, LOCALITY_SAMPLES, Intervention

# Multiply-adds count as two operations. One core was measured while the other trained too: 65 to 75
# GFLOP/s where the networks of the laptop preset draw in single precision, 94 where they train in
# bfloat16 (exp1, 80 images/s), 83 in distillation, which counts with less: it may take fewer
# minutes than asked for, not more. The GPU's rate is stated, not measured: 40 % of an A100's 312
# TFLOP/s in bfloat16.
CORE = 7.5e10
GPU = 0.4 * 312e12
RATES = {"smoke": 5e9, "laptop": 6.5e10, "small": GPU, "paper": GPU}  # small networks mostly wait
TRAINING_RATES = RATES | {"laptop": 9e10}
# Seconds to render a training image and to take its share of a step beside the passes, measured as
# above; a GPU's images are rendered by other processes.
SECONDS_AN_IMAGE = {"smoke": 0.0, "laptop": 1.5e-3, "small": 0.0, "paper": 0.0}
START = 0.15  # minutes to begin a command
FORWARD_AND_BACKWARD = 3
PENALISED = 0.25  # of the batches of a training with a penalty (diffusion/penalty.py)
PATCHES_AN_IMAGE = 2  # in training, one with a condition and one without (section E.3)
NOISE_LEVELS = 9  # of locality
PIXELS = 5  # whose gradients are taken, each in three channels
CONCEPTS = 9  # of features: eight colours and nothing
FEATURE_SAMPLES = 100


def hardware(preset: str) -> str:
    return "one GPU" if RATES[preset] == GPU else "one core"


def operations(config: Config, drawing: bool = False) -> int:
    """Of one pass. Of patches only what the central cell depends on is computed in drawing."""
    # One config stands for all of a network, however it is trained: it is counted once.
    built = (config.net, config.architecture, RECIPES["smoke", "global"])
    return flop_count(Config(config.conditioner, "all", *built, words=config.words), drawing)


@cache
def flop_count(config: Config, drawing: bool) -> int:
    """By torch, on tensors that hold nothing."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from composcope.runs.model import conditioner_of, network  # torch takes a second to load

    conditioner = conditioner_of(config)
    with torch.device("meta"):
        net = network(config, conditioner)
        side = config.architecture.resolution
        features = conditioner.features if conditioner else 0
        cell: dict[str, int] = {}
        if config.net == "local":
            side = net.patches.side
            features = net.patches.features
            cell = {"centre": net.patches.cell} if drawing else {}
            net = net.unet
        x = torch.zeros(1, 3, side, side)
        with FlopCounterMode(display=False) as counter:
            net(x, torch.zeros(1), torch.zeros(1, features), **cell)
    return counter.get_total_flops()


def views(config: Config) -> int:
    """Passes for one evaluation of the denoiser."""
    return config.architecture.grid_size**2 if config.net == "local" else 1


def training_operations(config: Config) -> int:
    """For one training image; a penalised batch has every image twice."""
    seen = PATCHES_AN_IMAGE if config.net == "local" else 1
    passes = FORWARD_AND_BACKWARD * seen * operations(config)
    return round(passes * (1 + PENALISED)) if config.recipe.penalty else passes


def minutes(passes: float, config: Config, preset: str) -> float:
    """To draw or to measure."""
    return START + passes * operations(config, drawing=True) / RATES[preset] / 60


def training_minutes(config: Config, preset: str) -> float:
    each = training_operations(config) / TRAINING_RATES[preset] + SECONDS_AN_IMAGE[preset]
    return START + config.recipe.images * each / 60


def distilled_states(config: Config, minutes: float, times: float) -> int:
    """States that a student learns from in so many minutes of one core, each so many times. At
    each the teacher passes once for each of its conditions and once for none."""
    from composcope.runs.model import conditioner_of

    conditioner = conditioner_of(config)
    most = conditioner.most if conditioner else 0
    passes = FORWARD_AND_BACKWARD * times + most / 2 + 1
    return int(60 * minutes * CORE / (passes * views(config) * operations(config)))


def evaluation_passes(num: int, max_K: int, steps: int, done: Intervention | None) -> int:
    """Heun's method takes 2 steps - 1; an intervention, a pass a condition and one for none, but
    guidance alone a pass for all of them."""
    passes = 1 if done is None else 2 if done == GUIDANCE else max_K + 1
    each_K = [min(K + 1, passes) for K in range(max_K + 1)]
    return num * (2 * steps - 1) * sum(each_K)


def locality_passes() -> int:
    """For a sample and noise level: on its way, without each condition, gradients of pixels."""
    gradients = PIXELS * 3 * FORWARD_AND_BACKWARD
    return NOISE_LEVELS * LOCALITY_SAMPLES * (2 + PIXELS + gradients)


def features_passes(steps: int) -> int:
    return CONCEPTS * FEATURE_SAMPLES * (2 * steps - 1)
