"""An inference on a GPU, or on the stand-in for one: the model is made once, at the first call."""

import gpuwhisk_sim

model = None


def main(args):
    global model
    if model is None:
        model = gpuwhisk_sim.Model(args.get("model", "resnet50"))
    batch = args.get("batch", 8)
    return {"model": model.name, "batch": batch, "ms": round(model.infer(batch), 3)}
