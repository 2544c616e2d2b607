"""Workloads for functions on a GPU, or on the stand-in for one: the example kernels, and models of the papers.

    import gpuwhisk_sim
    model = gpuwhisk_sim.Model("resnet50")
    def main(args):
        return {"ms": model.infer(args.get("batch", 1))}

Nothing but the driver's library is needed. A model computes nothing; it takes the time and the memory of one. CudaError has
the driver's number in `code`.
"""

import ast
import ctypes
import os
import re
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = 20  # Kernels of an inference.
MIB = 1 << 20
# What the table's times are for.
A100_SMS, A100_BYTES_PER_NS = 108, 1555
BLOCKS_PER_SM = 8

_driver = None


class CudaError(Exception):
    """A call of the driver failed."""

    def __init__(self, call, code):
        text = ctypes.c_char_p()
        _driver.cuGetErrorString(code, ctypes.byref(text))
        super().__init__(f"{call}: {(text.value or b'unknown error').decode()} ({code})")
        self.code = code


def _load():
    global _driver
    if _driver is None:
        _driver = ctypes.CDLL("libcuda.so.1")
    return _driver


def _call(name, *arguments):
    code = getattr(_load(), name)(*arguments)
    if code != 0:
        raise CudaError(name, code)


def use_device(index=0):
    """Makes the device's primary context current, which is made if there is none. Raises CudaError."""
    _call("cuInit", 0)
    current = ctypes.c_void_p()
    _call("cuCtxGetCurrent", ctypes.byref(current))
    if current.value is None:
        _call("cuDevicePrimaryCtxRetain", ctypes.byref(current), index)
        _call("cuCtxSetCurrent", current)


def memory_info():
    """Free and total bytes of the current device."""
    use_device()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def synchronize():
    """Waits for all that was launched."""
    _call("cuCtxSynchronize")


class Memory:
    """Device memory of so many bytes."""

    def __init__(self, size):
        use_device()
        self.size = size
        self._pointer = ctypes.c_uint64()
        _call("cuMemAlloc_v2", ctypes.byref(self._pointer), ctypes.c_size_t(size))

    @property
    def pointer(self):
        """As a kernel's argument."""
        return ctypes.c_uint64(self._pointer.value)

    def write(self, data):
        """Copies bytes, or an array of ctypes, to its beginning."""
        size = min(len(bytes(data)), self.size)
        _call("cuMemcpyHtoD_v2", self._pointer, bytes(data), ctypes.c_size_t(size))

    def read(self):
        """All of it, as bytes."""
        data = ctypes.create_string_buffer(self.size)
        _call("cuMemcpyDtoH_v2", data, self._pointer, ctypes.c_size_t(self.size))
        return data.raw

    def free(self):
        """Gives it back; it is of no use afterwards."""
        if self._pointer.value:
            _call("cuMemFree_v2", self._pointer)
        self._pointer.value = 0


class Module:
    """Kernels of PTX text."""

    def __init__(self, ptx):
        use_device()
        self._module = ctypes.c_void_p()
        self._functions = {}
        _call("cuModuleLoadData", ctypes.byref(self._module), ptx.encode())

    def launch(self, name, blocks, *arguments, threads=256):
        """Launches a kernel in the default stream; arguments are values of ctypes."""
        function = self._functions.get(name)
        if function is None:
            function = ctypes.c_void_p()
            _call("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
            self._functions[name] = function
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(*(ctypes.addressof(one) for one in arguments))
        _call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, pointers, None)

    def unload(self):
        _call("cuModuleUnload", self._module)


def _lines(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read().splitlines()


def kernels():
    """The example kernels vecadd(a, b, c, n), saxpy(n, alpha, x, y), matmul(a, b, c, n) and spin(ns), as a Module."""
    return Module("".join(ast.literal_eval(line) for line in _lines("gpuwhisk_kernels.h") if line.startswith('"')))


def _read_models():
    row = re.compile(r"GPUWHISK_MODEL\((\w+), ([-\d., ]+)\)")
    found = (row.fullmatch(line) for line in _lines("gpuwhisk_models.h"))
    return {one[1]: tuple(float(value) for value in one[2].split(",")) for one in found if one}


def models():
    """Names of the models."""
    return sorted(_read_models())


def _layer(name, dram, sensitivity, pressure):
    per_block = dram * A100_BYTES_PER_NS / (A100_SMS * BLOCKS_PER_SM)
    costs = f"nsPerBlock=1 dramBytesPerBlock={per_block:.6f} sensitivity={sensitivity} pressure={pressure} scaledBy=0"
    return f"""// gpuwhisk threads=256 blocksPerSm={BLOCKS_PER_SM} {costs}
.visible .entry {name}(.param .u64 ns)
{{
  .reg .pred %p1;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [ns];
  mov.u64 %rd2, %globaltimer;
  add.u64 %rd3, %rd2, %rd1;
WAIT:
  mov.u64 %rd4, %globaltimer;
  setp.lt.u64 %p1, %rd4, %rd3;
  @%p1 bra WAIT;
  ret;
}}
"""


def _layers(dram, sensitivity, pressure):
    head = ".version 7.0\n.target sm_70\n.address_size 64\n"
    return head + _layer("layer", dram, 1, 1) + _layer("training_layer", dram, sensitivity, pressure)


class Model:
    """A model's weights on the device, and inferences and training steps that take its time.

    Raises KeyError for a name that models() does not have, CudaError (code 2) where its memory does not fit.
    """

    def __init__(self, name):
        fixed, item, weights, item_mib, full_batch, dram, sensitivity, pressure = _read_models()[name]
        self.name = name
        self._fixed_ms, self._item_ms = fixed, item
        self._item_mib, self._full_batch = item_mib, full_batch
        self._module = Module(_layers(dram, sensitivity, pressure))
        self._weights = Memory(int(weights * MIB))
        self._room = None

    def solo_ms(self, batch):
        """What an inference takes alone on a whole A100, ms."""
        return self._fixed_ms + self._item_ms * batch

    def infer(self, batch=1):
        """Runs an inference and returns how long it took, ms."""
        return self._run("layer", batch, 1)

    def train_step(self, batch=1):
        """Runs a training step, forward and back: three times the time, and the memory, of an inference."""
        return self._run("training_layer", batch, 3)

    def _run(self, layer, batch, times):
        if batch < 1:
            raise ValueError("batch must be at least 1")
        start = time.perf_counter()
        self._make_room(int(batch * self._item_mib * times * MIB))
        blocks = BLOCKS_PER_SM * max(1, round(A100_SMS * min(1.0, batch / self._full_batch)))
        layer_ns = ctypes.c_uint64(int(self.solo_ms(batch) * 1e6 / LAYERS))
        for _ in range(LAYERS * times):
            self._module.launch(layer, blocks, layer_ns)
        synchronize()
        return (time.perf_counter() - start) * 1e3

    def _make_room(self, size):
        if self._room is not None and self._room.size >= size:
            return
        if self._room is not None:
            self._room.free()
            self._room = None
        self._room = Memory(size)

    def close(self):
        """Gives its memory back."""
        for memory in (self._room, self._weights):
            if memory is not None:
                memory.free()
        self._room = None
        self._module.unload()
