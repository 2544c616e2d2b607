"""Models of the GPU benchmark, with random weights: only their times matter."""

import torch
from torch import nn
from torch.nn import functional


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

    words = 30522

    def __init__(self, layers=12, width=768):
        super().__init__()
        self.embedding, self.places = nn.Embedding(self.words, width), nn.Embedding(512, width)
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.encoder(self.embedding(x) + self.places(places))[:, 0])


class Block(nn.Module):
    """A layer of a decoder, with normalisation before attention and before the feed-forward part."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None, at=0):
        """`cache`: keys and values of the tokens before `at`; those of `x`, one token a sequence, are added to it."""
        batch, tokens, width = x.shape
        parts = self.inputs(self.before(x)).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        if cache is not None:
            cache[0][:, :, at], cache[1][:, :, at] = key[:, :, 0], value[:, :, 0]
            key, value = cache[0][:, :, : at + 1], cache[1][:, :, : at + 1]
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
        x = x + self.output(found.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Decoder(nn.Module):
    """A language model as GPT-2, whose last layer shares the weights of the words."""

    words = 32000

    def __init__(self, layers, width, heads, most):
        super().__init__()
        self.embedding, self.places = nn.Embedding(self.words, width), nn.Embedding(most, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, x, caches=None, at=0):
        places = torch.arange(at, at + x.shape[1], device=x.device)
        x = self.embedding(x) + self.places(places)
        for i, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[i], at)
        return functional.linear(self.last(x), self.embedding.weight)
