"""Takes device memory until it is refused or the function is ended."""

import torch

kept = []


def main(args):
    while True:
        kept.append(torch.ones(1 << 26, device="cuda"))
        torch.cuda.synchronize()
