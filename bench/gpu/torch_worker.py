"""One process of the benchmark of a GPU, with PyTorch: as native/gpu-bench/worker.c, for other workloads.

    load resnet50:BATCH | bert:BATCH | decode:BATCH | train-resnet50:BATCH | train-bert:BATCH | train-gpt1b:BATCH
    load eager:BATCH | graph:BATCH | cublas:SIZE | triton:MIB
    unload
    run SECONDS

ResNet-50 is for images of 224 by 224, BERT-base for 128 tokens, both in half precision. `decode` is GPT-2 with a cache of
keys and values; an iteration is one token of each sequence. Training is forward, backward and a step: of SGD under autocast;
for gpt1b, a decoder of 980 million parameters on 512 tokens, of AdamW, all in bfloat16, which takes about 12 GiB at batch 4.
`eager` is BERT launched kernel by kernel, `graph` the same as a CUDA graph, `cublas` products of square matrices, `triton` a
kernel that Triton compiles. `--tiny` shrinks the models and `--device cpu` runs them without a GPU, to test this program.
"""

import argparse
import gc
import statistics
import sys
import time

import torch
from torch.nn import functional

from torch_models import Bert, Decoder, resnet50

TOKENS = 128
TRAINED_TOKENS = 512
PROMPT, CONTEXT = 64, 512
# Iterations of some milliseconds, so that the end of one costs little.
PRODUCTS, TRITON_LAUNCHES = 8, 32


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true")
    return parser.parse_args()


OPTIONS = parse()
DEVICE = torch.device(OPTIONS.device)
HALF = torch.float16 if OPTIONS.device == "cuda" else torch.bfloat16


def free():
    """Gives the memory of what is no longer referred to back to the device."""
    gc.collect()
    if OPTIONS.device == "cuda":
        torch.cuda.empty_cache()


def synchronize():
    if OPTIONS.device == "cuda":
        torch.cuda.synchronize()


def bert():
    return Bert(2, 128) if OPTIONS.tiny else Bert()


def data_of(kind, batch, dtype):
    if kind == "resnet50":
        side = 32 if OPTIONS.tiny else 224
        return torch.randn(batch, 3, side, side, device=DEVICE, dtype=dtype)
    return torch.randint(0, Bert.words, (batch, TOKENS), device=DEVICE)


def made(make, dtype):
    """A model whose weights are made on the device."""
    with DEVICE:
        return make().to(dtype=dtype)


def inference(kind, batch):
    model = made({"resnet50": resnet50, "bert": bert}[kind], HALF).eval()
    data = data_of(kind, batch, HALF)

    def infer():
        with torch.inference_mode():
            model(data)

    return infer


def training(kind, batch):
    model = made({"resnet50": resnet50, "bert": bert}[kind], torch.float32).train()
    data = data_of(kind, batch, torch.float32)
    target = torch.zeros(batch, dtype=torch.long, device=DEVICE)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-6)

    def train():
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE.type, torch.bfloat16):
            loss = functional.cross_entropy(model(data).float(), target)
        loss.backward()
        optimiser.step()

    return train


def train_gpt1b(batch):
    shape = (2, 128, 2) if OPTIONS.tiny else (24, 1792, 14)
    model = made(lambda: Decoder(*shape, TRAINED_TOKENS), torch.bfloat16).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=OPTIONS.device == "cuda")
    text = torch.randint(0, Decoder.words, (batch, TRAINED_TOKENS + 1), device=DEVICE)

    def train():
        optimiser.zero_grad(set_to_none=True)
        said = model(text[:, :-1]).flatten(0, 1)
        functional.cross_entropy(said.float(), text[:, 1:].flatten()).backward()
        optimiser.step()

    return train


def decode(batch):
    layers, width, heads = (2, 128, 2) if OPTIONS.tiny else (12, 768, 12)
    model = made(lambda: Decoder(layers, width, heads, CONTEXT), HALF).eval()
    shape = (layers, 2, batch, heads, CONTEXT, width // heads)
    caches = torch.zeros(shape, device=DEVICE, dtype=HALF)
    token = torch.zeros(batch, 1, dtype=torch.long, device=DEVICE)
    at = PROMPT

    def step():
        nonlocal token, at
        with torch.inference_mode():
            token = model(token, caches, at)[:, -1:].argmax(-1)
        at = PROMPT if at + 1 == CONTEXT else at + 1

    return step


def graph(batch):
    """BERT in a CUDA graph. The stream of the capture runs it some times first, as PyTorch demands."""
    infer = inference("bert", batch)
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            infer()
    torch.cuda.current_stream().wait_stream(aside)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        infer()
    return captured.replay


def cublas(size):
    a, b = (torch.randn(size, size, device=DEVICE, dtype=HALF) for _ in range(2))
    c = torch.empty_like(a)
    return lambda: [torch.mm(a, b, out=c) for _ in range(PRODUCTS)]


def triton(mib):
    from triton_kernels import launcher

    launch = launcher(mib, DEVICE)
    return lambda: [launch() for _ in range(TRITON_LAUNCHES)]


WORKLOADS = {
    "resnet50": lambda batch: inference("resnet50", batch),
    "bert": lambda batch: inference("bert", batch),
    "decode": decode,
    "train-resnet50": lambda batch: training("resnet50", batch),
    "train-bert": lambda batch: training("bert", batch),
    "train-gpt1b": train_gpt1b,
    "eager": lambda batch: inference("bert", batch),
    "graph": graph,
    "cublas": cublas,
    "triton": triton,
}


def prepare(name):
    """A function that does one iteration of a workload. Raises ValueError for an unknown one."""
    kind, _, size = name.partition(":")
    if kind not in WORKLOADS or not size.isdigit() or int(size) < 1:
        raise ValueError(f"'{name}' is no workload: it takes NAME:NUMBER, NAME one of {', '.join(WORKLOADS)}")
    return WORKLOADS[kind](int(size))


def run(iterate, seconds):
    each, begin = [], time.perf_counter()
    at, end = begin, begin + seconds
    while at < end or not each:
        iterate()
        synchronize()
        now = time.perf_counter()
        each.append((now - at) * 1e3)
        at = now
    each.sort()
    p95, p99 = (each[(percent * len(each) + 99) // 100 - 1] for percent in (95, 99))
    return f"{len(each)} {statistics.median(each):.6f} {p95:.6f} {statistics.fmean(each):.6f} {p99:.6f}"


def main():
    torch.set_num_threads(1)
    if OPTIONS.device == "cuda":
        facts = torch.cuda.get_device_properties(DEVICE)
        print("ready", facts.multi_processor_count, facts.total_memory >> 20, facts.name, flush=True)
    else:
        print("ready 0 0 cpu", flush=True)
    iterate = None
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        try:
            if command == "load":
                iterate = None
                free()
                iterate = prepare(argument)
                for _ in range(3):
                    iterate()
                synchronize()
                print("ok", flush=True)
            elif command == "unload":
                iterate = None
                free()
                print("ok", flush=True)
            elif command == "run" and iterate is not None:
                print("ok", run(iterate, float(argument)), flush=True)
            else:
                print("error what?", flush=True)
        except Exception as error:  # Of the driver, of PyTorch, or of Triton's compiler: the process continues.
            iterate = None
            print("error", " ".join(f"{type(error).__name__}: {error}".split())[:300], flush=True)


main()
