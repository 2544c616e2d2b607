"""Prints the features of a PyTorch model as JSON, from one forward pass without a GPU; `wsk gpu features` runs it.

Start: python gpuwhisk_features.py FILE OPTIONS, where OPTIONS is JSON: {"model"?: name, "inputs": [{"shape", "dtype"?}],
"batch": samples, "training": bool}. The answer is {"features": {...}, "device": "meta" or "cpu"} or {"error": text}.
What the file itself prints goes to stderr. PyTorch 1.13 and later are known to do.
"""

import contextlib
import importlib.util
import json
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
if HERE not in sys.path:
    sys.path.insert(0, HERE)
from gpuwhisk_layers import Count, attention_flops, kind_of_class, kind_of_function, layer_flops, memory_mib

# Modules of a layer's output are looked through to this depth.
DEEPEST = 4


class Failure(Exception):
    """An error that the user is told."""


def last_line(error):
    return traceback.format_exception_only(type(error), error)[-1].strip()


def load_torch():
    try:
        import torch
        import torch.nn
    except ImportError as error:
        raise Failure("PyTorch cannot be imported by %s: %s" % (sys.executable, last_line(error)))
    return torch


def load_file(path):
    """The module that the file defines; it finds the modules beside it."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec = importlib.util.spec_from_file_location("gpuwhisk_model", path)
        if spec is None:
            raise Failure("%s is no Python file" % path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    except Failure:
        raise
    except BaseException as error:  # A module that exits is one that cannot be imported.
        raise Failure("%s cannot be imported: %s" % (path, last_line(error)))
    return module


def find_model(torch, module, name):
    """The model of the file: its only one, or that of `name`, made by a call without arguments if it is no model yet."""
    base = torch.nn.Module
    if name is None:
        found = {id(one): key for key, one in vars(module).items() if isinstance(one, base)}
        if len(found) == 1:
            return getattr(module, next(iter(found.values())))
        if found:
            raise Failure("the file has several models, --model NAME chooses one: %s" % ", ".join(sorted(found.values())))
        own = [
            key
            for key, one in vars(module).items()
            if isinstance(one, type) and issubclass(one, base) and one.__module__ == module.__name__
        ]
        hint = ", such as %s" % ", ".join(sorted(own)) if own else ""
        raise Failure("the file has no model at its top level, --model NAME names a class or function that makes one" + hint)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise Failure("the file has no '%s'" % name)
        found = getattr(found, part)
    if isinstance(found, base):
        return found
    if not callable(found):
        raise Failure("'%s' is neither a torch.nn.Module, nor a class or function that makes one" % name)
    try:
        made = found()
    except BaseException as error:
        raise Failure("'%s' cannot be called without arguments: %s" % (name, last_line(error)))
    if not isinstance(made, base):
        raise Failure("'%s' makes no torch.nn.Module, but %s" % (name, type(made).__name__))
    return made


def make_inputs(torch, inputs, batch, device):
    tensors = []
    for one in inputs:
        name = one.get("dtype") or "float32"
        dtype = getattr(torch, name, None)
        if not isinstance(dtype, torch.dtype):
            raise Failure("'%s' is no dtype of PyTorch" % name)
        tensors.append(torch.zeros([batch, *one["shape"]], dtype=dtype, device=device))
    return tensors


def tensors_in(torch, value, depth=0):
    """The tensors of what a layer takes or gives."""
    if isinstance(value, torch.Tensor):
        return [value]
    if depth == DEEPEST:
        return []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in tensors_in(torch, one, depth + 1)]
    return []


def bytes_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def class_names(layer):
    return [(one.__module__, one.__name__) for one in type(layer).__mro__]


class Observer:
    """Counts layers, operations and bytes of a forward pass by hooks on the model's layers."""

    def __init__(self, torch, model, operations):
        self.torch = torch
        self.operations = operations  # Operations that PyTorch has counted so far; 0 where it cannot.
        self.count = Count()
        self.missed_flops = 0  # Operations of layers that PyTorch's own counter does not know.
        self.outputs_bytes = 0
        self.largest_bytes = 0
        self.open = []  # Layers of a kind that run, with what was counted before them.
        self.handles = []
        for layer in model.modules():
            children = any(True for _ in layer.children())
            kind = kind_of_class(class_names(layer), children)
            if kind is not None:
                self.handles.append(layer.register_forward_pre_hook(lambda layer, given: self.begin()))
            if kind is not None or not children:
                hook = lambda layer, given, result, kind=kind: self.end(kind, layer, given, result)  # noqa: E731
                self.handles.append(layer.register_forward_hook(hook))

    def close(self):
        for handle in self.handles:
            handle.remove()

    def begin(self):
        self.open.append(self.operations())

    def end(self, kind, layer, given, result):
        inputs = tensors_in(self.torch, given)
        outputs = tensors_in(self.torch, result)
        if kind is not None:
            before = self.open.pop()
            if not self.open:  # Layers within a layer belong to it.
                counted = self.operations() - before
                self.missed_flops += max(0, flops_of(kind, layer, inputs, outputs) - counted)
                # Attention has its projections in itself: of its inputs together, and out.
                self.count.add("linear" if kind == "attention" else kind, id(layer), 2 if kind == "attention" else 1)
        if not self.open:
            self.outputs_bytes += bytes_of(outputs)
            self.largest_bytes = max(self.largest_bytes, bytes_of(inputs) + bytes_of(outputs))

    def called(self, name):
        """Notes a function of PyTorch that the model calls."""
        kind = kind_of_function(name)
        if kind is not None and not self.open:
            self.count.add(kind)


def flops_of(kind, layer, inputs, outputs):
    """Operations of one run of a layer by its shapes."""
    if not outputs:
        return 0
    result = tuple(outputs[0].shape)
    given = tuple(inputs[0].shape) if inputs else result
    if kind == "attention":
        key = tuple(inputs[1].shape) if len(inputs) > 1 else given
        length = key[-2] if layer.batch_first or len(key) < 3 else key[0]
        return attention_flops(given, key, layer.embed_dim, layer.kdim, layer.vdim, length)
    weights = [tuple(one.shape) for one in layer.parameters(recurse=False) if one.dim() > 1]
    return layer_flops(kind, given, result, weights, bool(getattr(layer, "transposed", False)))


def flop_counter():
    """PyTorch's counter of operations; None in versions without it."""
    try:
        from torch.utils.flop_counter import FlopCounterMode
    except ImportError:
        return None
    return FlopCounterMode(display=False)


def function_watch(observer):
    """A context in which the observer is told of the functions of PyTorch that are called; none in versions without it."""
    try:
        from torch.overrides import TorchFunctionMode
    except ImportError:
        return contextlib.nullcontext()

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            observer.called(getattr(function, "__name__", ""))
            return function(*args, **(kwargs or {}))

    return Watch()


@contextlib.contextmanager
def moved_to_meta(torch, model):
    """The model with parameters and buffers that have shapes and no memory; as before afterwards."""
    kept = [(layer, dict(layer._parameters), dict(layer._buffers)) for layer in model.modules()]
    try:
        model.to("meta")
        # Tensors that the forward pass makes have to be of the same device.
        with torch.device("meta") if hasattr(torch.device("meta"), "__enter__") else contextlib.nullcontext():
            yield
    finally:
        for layer, parameters, buffers in kept:
            layer._parameters.update(parameters)
            layer._buffers.update(buffers)


def forward(torch, model, inputs):
    """Runs the model once. Returns its observer and the operations that were counted."""
    counter = flop_counter()
    observer = Observer(torch, model, counter.get_total_flops if counter else lambda: 0)
    try:
        with torch.no_grad(), counter or contextlib.nullcontext(), function_watch(observer):
            model(*inputs)
        return observer, observer.operations() + observer.missed_flops
    finally:
        observer.close()


def measure(torch, model, options):
    """One forward pass: with shapes alone, or on the processor if the model needs values."""
    model.eval()
    inputs, batch = options["inputs"], options["batch"]
    try:
        with moved_to_meta(torch, model):
            return "meta", *forward(torch, model, make_inputs(torch, inputs, batch, "meta"))
    except Failure:
        raise
    except Exception:
        pass  # The processor's error tells more: on the device meta the cause may be the device.
    try:
        return "cpu", *forward(torch, model, make_inputs(torch, inputs, batch, "cpu"))
    except BaseException as error:
        raise Failure("the model does not take the input: %s" % last_line(error))


def features_of(path, options):
    torch = load_torch()
    model = find_model(torch, load_file(path), options.get("model"))
    device, observer, flops = measure(torch, model, options)
    parameters = list(model.parameters())
    memory = memory_mib(
        bytes_of(parameters) + bytes_of(model.buffers()),
        bytes_of(one for one in parameters if one.requires_grad),
        observer.largest_bytes,
        observer.outputs_bytes,
        options["training"],
    )
    params = sum(one.numel() for one in parameters)
    return {"features": observer.count.features(flops, params, memory, options["batch"]), "device": device}


def main():
    _, path, options = sys.argv
    # The answer has a descriptor of its own: what the file prints is none.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.argv = [path]
    try:
        told = features_of(path, json.loads(options))
    except Failure as failure:
        told = {"error": str(failure)}
    answer.write(json.dumps(told))
    answer.close()
    # Threads that the file has started are not waited for.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
