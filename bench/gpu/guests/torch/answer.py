"""A small model, made when the code is loaded; each request runs it."""

import time

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).half().cuda()
data = torch.randn(8, 1024, device="cuda", dtype=torch.float16)
with torch.inference_mode():
    model(data)
torch.cuda.synchronize()


def main(args):
    facts = torch.cuda.get_device_properties(0)
    begin, count = time.perf_counter(), 0
    end = begin + args.get("seconds", 0)
    with torch.inference_mode():
        while count == 0 or time.perf_counter() < end:
            model(data)
            torch.cuda.synchronize()
            count += 1
    ms = (time.perf_counter() - begin) * 1e3 / count
    return {"ms": ms, "count": count, "sms": facts.multi_processor_count, "by": f"torch {torch.__version__}"}
