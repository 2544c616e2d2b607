"""A small model on the driver API, made when the code is loaded; each request runs it."""

import time

import gpuwhisk_sim

model = gpuwhisk_sim.Model("resnet50")
model.infer(1)


def main(args):
    begin, count = time.perf_counter(), 0
    end = begin + args.get("seconds", 0)
    while count == 0 or time.perf_counter() < end:
        model.infer(1)
        count += 1
    ms = (time.perf_counter() - begin) * 1e3 / count
    return {"ms": ms, "count": count, "by": "the driver API"}
