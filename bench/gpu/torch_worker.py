"""One process of the benchmark of a GPU, with PyTorch: as native/gpu-bench/worker.c, for other workloads.

    load resnet50:BATCH | bert:BATCH | train-resnet50:BATCH | train-bert:BATCH
    run SECONDS

ResNet-50 is for images of 224 by 224, BERT-base for 128 tokens, both in half precision with random weights: what they
compute does not matter, how long it takes does. Training is forward, backward and a step of SGD.
"""

import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

TOKENS = 128


class Bottleneck(nn.Module):
    """He et al., Deep Residual Learning, figure 5, with the stride in the 3 by 3 convolution as torchvision has it."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            *(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
            *(nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)),
        )
        self.short = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return functional.relu(self.body(x) + self.short(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(inputs, width, stride if i == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class Bert(nn.Module):
    """Devlin et al., BERT-base: 12 layers of 768, 12 heads."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(30522, 768), nn.Embedding(512, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.head = nn.Linear(768, 2)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.encoder(self.words(x) + self.places(places))[:, 0])


def prepare(name, device):
    """A function that does one iteration of a workload."""
    kind, batch = name.rsplit(":", 1)
    batch, training = int(batch), kind.startswith("train-")
    make = {"resnet50": resnet50, "bert": Bert}[kind.removeprefix("train-")]
    kept = torch.float32 if training else torch.float16
    model = make().to(device=device, dtype=kept).train(training)
    is_image = make is resnet50
    data = torch.randn(batch, 3, 224, 224, device=device, dtype=kept) if is_image else torch.randint(0, 30522, (batch, TOKENS), device=device)
    if not training:

        def infer():
            with torch.inference_mode():
                model(data)

        return infer
    target = torch.zeros(batch, dtype=torch.long, device=device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-6)

    def train():
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.float16):
            loss = functional.cross_entropy(model(data).float(), target)
        loss.backward()
        optimiser.step()

    return train


def run(iterate, seconds):
    each, begin = [], time.perf_counter()
    at, end = begin, begin + seconds
    while at < end or not each:
        iterate()
        torch.cuda.synchronize()
        now = time.perf_counter()
        each.append((now - at) * 1e3)
        at = now
    each.sort()
    return f"{len(each)} {statistics.median(each):.6f} {each[int(0.95 * (len(each) - 1))]:.6f} {statistics.fmean(each):.6f}"


def main():
    device = torch.device("cuda", 0)
    facts = torch.cuda.get_device_properties(device)
    print("ready", facts.multi_processor_count, facts.total_memory >> 20, facts.name, flush=True)
    iterate = None
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        try:
            if command == "load":
                iterate = None
                torch.cuda.empty_cache()
                iterate = prepare(argument, device)
                for _ in range(3):
                    iterate()
                torch.cuda.synchronize()
                print("ok", flush=True)
            elif command == "run" and iterate is not None:
                print("ok", run(iterate, float(argument)), flush=True)
            else:
                print("error what?", flush=True)
        except (RuntimeError, KeyError, ValueError) as error:
            print("error", " ".join(str(error).split())[:300], flush=True)


main()
