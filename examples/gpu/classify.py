"""An inference on a GPU, or on the stand-in for one: the model is made once, at the first call."""

import gpuwhisk_sim

model = None


def main(args):
    return main_batch([args])[0]


def main_batch(all):
    """What annotation gpu's field `batch` is for: requests that wait are run as one."""
    global model
    if model is None:
        model = gpuwhisk_sim.Model("resnet50")
    batch = sum(args.get("pictures", 1) for args in all)
    ms = round(model.infer(batch), 3)
    return [{"model": model.name, "batch": batch, "ms": ms} for _ in all]
