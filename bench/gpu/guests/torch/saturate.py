"""Matrix products that fill every SM: how many a second."""

import time

import torch

a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
for _ in range(3):
    a @ a
torch.cuda.synchronize()


def main(args):
    count, begin = 0, time.perf_counter()
    end = begin + args.get("seconds", 0)
    while count == 0 or time.perf_counter() < end:
        for _ in range(5):
            a @ a
        torch.cuda.synchronize()
        count += 5
    return {"perS": count / (time.perf_counter() - begin)}
