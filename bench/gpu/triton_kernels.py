"""The Triton kernel of the GPU benchmark. A module of its own, since Triton is not installed everywhere."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def scale_add(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    total = tl.load(x + at, mask=inside) * 0.5 + tl.load(y + at, mask=inside)
    tl.store(y + at, total, mask=inside)


def launcher(mib, device):
    """A function that computes y = x / 2 + y over vectors of `mib` MiB."""
    count = mib << 18
    x, y = torch.ones(count, device=device), torch.zeros(count, device=device)
    return lambda: scale_add[(triton.cdiv(count, BLOCK),)](x, y, count, BLOCK)
