// `wsk gpu features`: the features of a PyTorch model. PyTorch itself is replaced by a small double with the interfaces that
// the helper uses: the double's layers have shapes and no values.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import { hasSet, featureFaults } from '@gpuwhisk/gpu/predict/degradation-features';
import { hasPython } from '../support/machine.js';
import { until } from '../support/running-platform.js';
import { describeCases, errorWithHint } from './cases.js';
import { runBinary, runWsk, withFolder, type WskResult } from './wsk-process.js';

const torchDouble = {
  'torch/__init__.py': `
import contextlib
from math import prod
class dtype:
    def __init__(self, size): self.size = size
float32, int64 = dtype(4), dtype(8)
class device:
    def __init__(self, name): self.name = name
class Tensor:
    requires_grad = False
    def __init__(self, shape, dtype=float32, device="cpu"):
        self.shape, self.dtype, self.device = tuple(shape), dtype, device
    def numel(self): return prod(self.shape)
    def dim(self): return len(self.shape)
    def element_size(self): return self.dtype.size
def zeros(shape, dtype=float32, device="cpu"): return Tensor(shape, dtype, device)
no_grad = contextlib.nullcontext
from . import nn
`,
  'torch/nn/__init__.py': `
from torch import Tensor, float32
class Parameter(Tensor):
    requires_grad = True
class Module:
    def __init__(self):
        self._parameters, self._buffers, self._children, self._hooks, self._pre = {}, {}, [], [], []
    def __setattr__(self, name, value):
        if isinstance(value, Module): self._children.append(value)
        if isinstance(value, Parameter): self._parameters[name] = value
        object.__setattr__(self, name, value)
    def children(self): return iter(self._children)
    def modules(self):
        yield self
        for child in self._children: yield from child.modules()
    def parameters(self, recurse=True):
        for one in self.modules() if recurse else [self]: yield from one._parameters.values()
    def buffers(self):
        for one in self.modules(): yield from one._buffers.values()
    def eval(self): self.training = False
    def to(self, device):
        for one in self.modules():
            one._parameters.update({name: Parameter(p.shape, p.dtype, device) for name, p in one._parameters.items()})
    def register_forward_hook(self, hook): self._hooks.append(hook); return Handle(self._hooks, hook)
    def register_forward_pre_hook(self, hook): self._pre.append(hook); return Handle(self._pre, hook)
    def __call__(self, *given):
        for hook in self._pre: hook(self, given)
        result = self.forward(*given)
        for hook in self._hooks: hook(self, given, result)
        return result
class Handle:
    def __init__(self, hooks, hook): self.remove = lambda: hooks.remove(hook)
class _ConvNd(Module):
    def __init__(self, into, out, kernel):
        super().__init__()
        self.weight, self.bias, self.out = Parameter((out, into, kernel, kernel)), Parameter((out,)), out
    def forward(self, x):
        if x.shape[1] != self.weight.shape[1]: raise RuntimeError("expected %d channels" % self.weight.shape[1])
        return Tensor((x.shape[0], self.out, *x.shape[2:]))
class Conv2d(_ConvNd): pass
class Linear(Module):
    def __init__(self, into, out):
        super().__init__()
        self.weight, self.out = Parameter((out, into)), out
    def forward(self, x): return Tensor((*x.shape[:-1], self.out))
class Same(Module):
    def forward(self, x): return Tensor(x.shape)
class _NormBase(Same):
    def __init__(self, size):
        super().__init__()
        self.weight = Parameter((size,))
        self._buffers["mean"] = Tensor((size,))
class BatchNorm2d(_NormBase): pass
class ReLU(Same): pass
class GELU(Same): pass
class _DropoutNd(Same): pass
class Dropout(_DropoutNd): pass
class _AdaptiveAvgPoolNd(Module):
    def forward(self, x): return Tensor(x.shape[:2])
class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd): pass
class Embedding(Module):
    def __init__(self, count, size):
        super().__init__()
        self.weight, self.size = Parameter((count, size)), size
    def forward(self, x): return Tensor((*x.shape, self.size))
`,
};

const network = `
import torch
print("noise on the standard output")
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.relu = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()
        self.again, self.pool, self.drop = torch.nn.Conv2d(8, 8, 1), torch.nn.AdaptiveAvgPool2d(), torch.nn.Dropout()
        self.last, self.gelu = torch.nn.Linear(8, 10), torch.nn.GELU()
    def forward(self, x):
        x = self.relu(self.norm(self.conv(x)))
        x = self.relu(self.again(self.again(x)))
        return self.gelu(self.last(self.drop(self.pool(x))))
`;

const positions = 16 * 16;
// The convolution that runs twice is one layer, and the operations of both runs.
const flops = 2 * 8 * 27 * positions + 2 * 2 * 8 * 8 * positions + 4 * 8 * positions + 2 * 8 * 10;
const params = 3 * 8 * 9 + 8 + 8 + (8 * 8 + 8) + 80;

(hasPython ? describe : describe.skip)('wsk gpu features', () => {
  let site: string;
  beforeAll(async () => {
    site = await mkdtemp(join(tmpdir(), 'gpuwhisk-torch-'));
    await mkdir(join(site, 'torch/nn'), { recursive: true });
    for (const [name, text] of Object.entries(torchDouble)) await writeFile(join(site, name), text);
  });
  afterAll(() => rm(site, { recursive: true, force: true }));

  const features = (text: string, flags: string[], folder = '', path = site): Promise<WskResult> =>
    withFolder(async (directory) => {
      const file = join(folder === '' ? directory : folder, 'model.py');
      await writeFile(file, text);
      const words = ['gpu', 'features', 'model.py', ...flags];
      return runWsk(words, { directory: folder === '' ? directory : folder, environment: { PYTHONPATH: path } });
    });
  const failure = async (text: string, flags: string[], path = site): Promise<string> => {
    const { code, stdout, stderr } = await features(text, ['--input', '3x16x16', ...flags], '', path);
    expect([code, stdout]).toEqual([1, '']);
    return stderr.replace("error: Unable to obtain the features of 'model.py': ", '').trimEnd();
  };

  test('are those of one forward pass, in the form that annotation gpu and predictions take', async () => {
    const flags = ['--input', '3x16x16', '--batch', '4', '--json'];
    const { code, stdout, stderr } = await features(`${network}model = Network()\n`, flags);
    expect([code, stderr]).toEqual([0, '']);
    const told = JSON.parse(stdout) as Record<string, number>;
    expect(told).toEqual({
      ...{ flops, params, memoryMiB: 1, activations: 3, convLayers: 2, linearLayers: 1, batch: 4, normLayers: 1 },
      ...{ reluLayers: 2, embedLayers: 0, poolLayers: 1, dropoutLayers: 1 },
    });
    expect(readGpuAnnotation({ memoryMiB: 2048, features: told }).features).toEqual(told);
    expect([hasSet(told, 'static'), featureFaults(told)]).toEqual([true, 0]);
  });

  test('are shown as a table; the memory of a training has its gradients and the state of its optimiser', async () => {
    const wide = `import torch\nclass Wide(torch.nn.Linear):\n  def __init__(self): super().__init__(1024, 4096)\n`;
    const flags = ['--model', 'Wide', '--input', '128x1024'];
    const memoryOf = (text: string): string | undefined => /memoryMiB +(\d+) /.exec(text)?.[1];
    const inference = await features(wide, flags);
    expect(inference.stdout).toMatch(/^Feature +Value +Meaning\n/);
    expect(inference.stdout).toContain(`${2 * 128 * 1024 * 4096}`);
    // 16 MiB of parameters; an input of 0.5 MiB and an output of 2 MiB.
    expect(memoryOf(inference.stdout)).toBe('19');
    expect(memoryOf((await features(wide, [...flags, '--training'])).stdout)).toBe('66');
  });

  test('take token ids, and a model that a function makes', async () => {
    const text = `import torch\nclass Box: pass\nbox = Box()\nbox.make = lambda: torch.nn.Embedding(1000, 16)\n`;
    const { stdout } = await features(text, ['--model', 'box.make', '--input', '128:int64', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ flops: 0, params: 16_000, embedLayers: 1 });
  });

  test('a file without a clear model, or one that cannot be run, is refused with the reason', async () => {
    expect(await failure(network, [])).toBe(
      'the file has no model at its top level, --model NAME names a class or function that makes one, such as Network',
    );
    const two = `${network}one = Network()\ntwo = Network()\nagain = one\n`;
    expect(await failure(two, [])).toMatch(/^the file has several models, --model NAME chooses one: (again|one), two$/);
    expect((await features(two, ['--input', '3x16x16', '--model', 'two', '--json'])).code).toBe(0);
    expect(await failure(network, ['--model', 'nothing'])).toBe("the file has no 'nothing'");
    expect(await failure(network, ['--model', 'torch.float32'])).toContain(
      "'torch.float32' is neither a torch.nn.Module",
    );
    expect(await failure('def f(): return 1', ['--model', 'f'])).toBe("'f' makes no torch.nn.Module, but int");
    expect(await failure('def f(x): return 1', ['--model', 'f'])).toMatch(/^'f' cannot be called without .*TypeError:/);
    expect(await failure('import json\njson.loads("{")', [])).toMatch(
      /^model\.py cannot be imported: .*JSONDecodeError:/,
    );
    expect(await failure('raise SystemExit(3)', [])).toBe('model.py cannot be imported: SystemExit: 3');
    const channels = `${network}model = Network()\n`;
    const { stderr } = await features(channels, ['--input', '4x16x16']);
    expect(stderr).toContain('the model does not take the input: RuntimeError: expected 3 channels');
    expect(await failure(channels, ['--input', '3:float3'])).toBe("'float3' is no dtype of PyTorch");
  });

  test('an interpreter that is missing, lacks PyTorch or ends at once is named', async () => {
    const words = ['gpu', 'features', 'model.py', '--input', '3', '--python', '/none/python'];
    const missing = await withFolder((directory) => runWsk(words, { directory }));
    expect([missing.code, missing.stderr]).toEqual([
      1,
      "error: Unable to start '/none/python': spawn /none/python ENOENT. --python names another interpreter.\n",
    ]);
    await withFolder(async (folder) => {
      await writeFile(join(folder, 'torch.py'), `raise ModuleNotFoundError("No module named 'torch'")`);
      const message = /^PyTorch cannot be imported by \S+: ModuleNotFoundError: No module named 'torch'$/;
      expect(await failure('', [], folder)).toMatch(message);
    });
    const crash = 'import os, sys\nprint("out of luck", file=sys.stderr)\nsys.stderr.flush()\nos._exit(7)\n';
    expect(await failure(crash, [])).toBe("error: 'python3' ended with exit code 7: out of luck");
  });

  test('a file that hangs is ended with what it has started, and one that writes without end, too', async () => {
    const hanging = `import subprocess, time
open("pid", "w").write(str(subprocess.Popen(["sleep", "60"]).pid))
time.sleep(60)
`;
    await withFolder(async (folder) => {
      const { code, stderr } = await features(hanging, ['--input', '3', '--timeout', '2'], folder);
      const message = 'error: The model was not measured within 2 s; --timeout sets another time.\n';
      expect([code, stderr]).toEqual([1, message]);
      const pid = Number(await readFile(join(folder, 'pid'), 'utf8'));
      // Its new parent may not have asked for its end yet.
      const state = async (): Promise<string> => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      await until('the process that it started has ended', async () => /^$|\) Z /.test(await state()));
    });
    const flooding =
      'import os\nwhile True:\n  for fd in range(3, 20):\n    try: os.write(fd, b"x" * 65536)\n    except OSError: pass\n';
    expect(await failure(flooding, [])).toBe("error: 'python3' ended with SIGKILL");
  });

  test('operations of layers are those of their formulas', async () => {
    const script = `
from gpuwhisk_layers import attention_flops, kind_of_class, kind_of_function, layer_flops, memory_mib
from json import dumps
lstm = [(2600, 650), (2600, 650)] * 2
print(dumps([
  layer_flops("conv", (1, 3, 224, 224), (1, 64, 112, 112), [(64, 3, 7, 7)]),
  layer_flops("conv", (1, 32, 112, 112), (1, 32, 112, 112), [(32, 1, 3, 3)]),
  layer_flops("conv", (1, 16, 8, 8), (1, 4, 16, 16), [(16, 4, 2, 2)], True),
  layer_flops("linear", (32, 2048), (32, 1000), [(1000, 2048)]),
  layer_flops("recurrent", (35, 20, 650), (35, 20, 650), lstm),
  layer_flops("norm", (8, 64), (8, 64), [(64,)]),
  layer_flops("pool", (1, 8, 4, 4), (1, 8, 2, 2)),
  attention_flops((1, 128, 768), (1, 128, 768), 768, 768, 768, 128),
  kind_of_class([("a", "LlamaRMSNorm"), ("torch.nn.modules.module", "Module")], False),
  kind_of_class([("a", "Linear"), ("torch.nn.modules.module", "Module")], False),
  kind_of_class([("a", "Mine"), ("torch.nn.modules.linear", "Linear")], False),
  [kind_of_function(name) for name in ("relu_", "gelu", "max_pool2d", "dropout", "conv2d", "matmul")],
  memory_mib(1 << 20, 1 << 20, 1 << 19, 1 << 21, True),
]))`;
    const folder = join(import.meta.dirname, '../../../runtimes/features');
    const { stdout, stderr } = await withFolder((directory) =>
      runBinary('python3', ['-B', '-c', script], { directory, environment: { PYTHONPATH: folder } }),
    );
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual([
      // ResNet-50's first layer has 118 million multiply-adds.
      ...[236_027_904, 7_225_344, 2 * 16 * 64 * 16, 2 * 32 * 2048 * 1000, 2 * 700 * 4 * 2600 * 650, 4 * 512, 0],
      // A layer of BERT-base at 128 tokens: 4 projections of 768 by 768, and scores and sums of 128 by 128.
      4 * 2 * 128 * 768 * 768 + 2 * 2 * 128 * 128 * 768,
      ...['norm', null, 'linear', ['relu', 'activation', 'pool', 'dropout', 'conv', null]],
      6,
    ]);
  });
});

describeCases('wsk gpu features: the command line', [
  { wsk: 'gpu features --input 3', code: 1, stderr: errorWithHint('Invalid argument(s). A Python file is required.') },
  {
    wsk: 'gpu features model.py',
    code: 2,
    stderr: errorWithHint('--input is required: the shape of one sample, such as 3x224x224'),
  },
  {
    wsk: 'gpu features model.py --input 3x0',
    code: 2,
    stderr: errorWithHint(
      "--input must be a shape with or without a type, such as 3x224x224 or 128:int64; found '3x0'",
    ),
  },
  {
    wsk: 'gpu features model.py --input 3 --batch 0',
    code: 2,
    stderr: errorWithHint('--batch must be from 1 to 10000000'),
  },
  {
    wsk: 'gpu features model.py --input 3 --timeout 0',
    code: 2,
    stderr: errorWithHint('--timeout must be from 1 to 3600 seconds'),
  },
  {
    wsk: ['gpu', 'workload', 'add', 'train', '--features', '{"flops":4e9,"params":25}'],
    answers: [[200, { id: 'ab12', device: 'GPU-0' }]],
    requests: ['POST /api/v1/gpu/workloads {"name":"train","features":{"flops":4e9,"params":25}}'],
    stdout: 'ok: registered workload ab12 on GPU-0',
  },
  {
    wsk: 'gpu workload run --features features.json -- true',
    files: { 'features.json': '{"smUtil": 0.4}\n' },
    answers: [
      [200, { id: 'ab12', env: {} }],
      [200, {}],
      [200, {}],
    ],
    requests: [
      'POST /api/v1/gpu/workloads {"name":"true","features":{"smUtil":0.4},"start":true,"command":"true"}',
      expect.stringMatching(/^PUT \/api\/v1\/gpu\/workloads\/ab12 /) as unknown as string,
      'DELETE /api/v1/gpu/workloads/ab12',
    ],
  },
  {
    wsk: ['gpu', 'workload', 'add', 'train', '--features', '{"flops":"many"}'],
    code: 2,
    stderr: errorWithHint('--features must be a JSON object of numbers'),
  },
  {
    wsk: 'gpu workload add train --features none.json',
    code: 2,
    stderr: errorWithHint("File 'none.json' is not a valid file or it does not exist"),
  },
]);
