"""Kinds, floating-point operations and memory of the layers of a neural network, from names, shapes and sizes alone.

A multiplication and an addition are two operations. PyTorch is not needed here.
"""

import re
from math import ceil, prod

MIB = 1024 * 1024

# Layers with weights count once however often they run; the others count each time.
WEIGHTED = ("conv", "linear", "norm", "embed")

# Class names of torch.nn by kind; a layer's kind is that of the first class of its MRO that is named here.
_CLASSES = {
    "conv": "_ConvNd",
    "linear": "Linear Bilinear",
    "norm": "_NormBase LayerNorm GroupNorm RMSNorm LocalResponseNorm CrossMapLRN2d",
    "embed": "Embedding EmbeddingBag",
    "relu": "ReLU ReLU6",
    "activation": "Threshold RReLU Hardtanh Sigmoid Hardsigmoid Tanh SiLU Mish Hardswish ELU CELU SELU GLU GELU Hardshrink"
    " LeakyReLU LogSigmoid Softplus Softshrink PReLU Softsign Tanhshrink Softmin Softmax Softmax2d LogSoftmax",
    "pool": "_MaxPoolNd _AvgPoolNd _AdaptiveMaxPoolNd _AdaptiveAvgPoolNd _LPPoolNd FractionalMaxPool2d FractionalMaxPool3d",
    "dropout": "_DropoutNd",
    "recurrent": "RNNBase RNNCellBase",
    "attention": "MultiheadAttention",
}
_KINDS = {name: kind for kind, names in _CLASSES.items() for name in names.split()}

# Functions of torch.nn.functional and torch by kind, for what runs outside of a layer of torch.nn.
_FUNCTIONS = (
    ("relu", re.compile(r"relu6?_?")),
    (
        "activation",
        re.compile(
            r"(leaky_relu|rrelu|prelu|hardtanh|sigmoid|hardsigmoid|tanh|silu|mish|hardswish|elu|celu|selu|glu|gelu|hardshrink"
            r"|logsigmoid|softplus|softshrink|softsign|tanhshrink|softmin|softmax|log_softmax|threshold)_?"
        ),
    ),
    ("conv", re.compile(r"conv(_transpose)?[123]d")),
    ("linear", re.compile(r"linear|bilinear")),
    ("norm", re.compile(r"(batch|layer|group|instance|rms|local_response)_norm")),
    ("embed", re.compile(r"embedding(_bag)?")),
    ("pool", re.compile(r"_?(adaptive_|fractional_)?(max|avg|lp)_pool[123]d(_with_indices)?")),
    ("dropout", re.compile(r"(alpha_|feature_|feature_alpha_)?dropout[123]?d?_?")),
)

# A norm subtracts, divides, scales and shifts.
_NORM_OPERATIONS = 4


def kind_of_class(classes, has_children):
    """The kind of a layer by its class and the bases of that, as (module, name) pairs; None if it has none.

    A class of other packages counts as a norm by its name, since models often bring their own.
    """
    for package, name in classes:
        if package.split(".")[:2] == ["torch", "nn"] and name in _KINDS:
            return _KINDS[name]
    _, name = classes[0]
    return "norm" if not has_children and re.search(r"Norm(\dd)?$", name) else None


def kind_of_function(name):
    """The kind of a layer that is the function of this name; None if it is none."""
    return next((kind for kind, names in _FUNCTIONS if names.fullmatch(name)), None)


def layer_flops(kind, given, result, weights=(), transposed=False):
    """Operations of one run of a layer of `kind`: from the shapes of its first input, its result and its weights.

    Those of attention are `attention_flops`. Lookups, activations, pooling and dropout count as none.
    """
    if kind == "norm":
        return _NORM_OPERATIONS * prod(result)
    if not weights:
        return 0
    if kind == "conv":
        # Each element of the result is a sum over channels and kernel; of a transposed one, each of the input goes into as many.
        return 2 * prod(given if transposed else result) * prod(weights[0][1:])
    if kind == "linear":
        return 2 * prod(result) * prod(weights[0][1:])
    if kind == "recurrent":
        # Every position of the sequence meets every weight matrix once.
        return 2 * (prod(given) // max(1, given[-1])) * sum(prod(shape) for shape in weights)
    return 0


def attention_flops(query, key, embedding, key_width, value_width, length):
    """Operations of multi-head attention: projections of query, key and value, scores, their sum, and the projection out.

    `query` and `key` are shapes; `length` is the number of keys that each query meets.
    """
    queries = prod(query[:-1])
    keys = prod(key[:-1])
    projections = 2 * embedding * (2 * queries * embedding + keys * (key_width + value_width))
    return projections + 2 * 2 * queries * length * embedding


def memory_mib(params_bytes, trained_bytes, largest_bytes, outputs_bytes, training):
    """Estimated device memory of a process without its CUDA context, MiB.

    Inference: parameters and buffers, and the inputs and outputs of the layer with most of them. Training: parameters and
    buffers, the outputs of all layers, which the backward pass reads, gradients, and two moments of Adam for each trained
    parameter.
    """
    activations = outputs_bytes + 3 * trained_bytes if training else largest_bytes
    return ceil((params_bytes + activations) / MIB)


class Count:
    """What ran in one forward pass."""

    def __init__(self):
        self.layers = {kind: 0 for kind in ("conv", "linear", "norm", "embed", "relu", "activation", "pool", "dropout")}
        self._seen = set()

    def add(self, kind, layer=None, times=1):
        """Counts a layer; `layer` identifies one with weights."""
        if kind not in self.layers:
            return
        if kind in WEIGHTED and layer is not None:
            if layer in self._seen:
                return
            self._seen.add(layer)
        self.layers[kind] += times

    def features(self, flops, params, memory, batch):
        """The features of SMORE's table of features (thesis, table 3.1), by the names that gpuwhisk knows them by."""
        layers = self.layers
        return {
            "flops": flops // batch,
            "params": params,
            "memoryMiB": memory,
            "activations": layers["activation"] + layers["relu"],
            "convLayers": layers["conv"],
            "linearLayers": layers["linear"],
            "batch": batch,
            "normLayers": layers["norm"],
            "reluLayers": layers["relu"],
            "embedLayers": layers["embed"],
            "poolLayers": layers["pool"],
            "dropoutLayers": layers["dropout"],
        }
