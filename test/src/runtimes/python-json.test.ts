import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import { pythonChannel } from '@gpuwhisk/invoker/host/native-programs';

/** Reads and writes random values, and reads damaged texts and odd ones, by both; prints how many the library did itself. */
const comparison = String.raw`
import _imp, json, random, sys
class Spec: name, origin = "gpuwhisk_channel", sys.argv[1]
channel = _imp.create_dynamic(Spec)
encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
random.seed(7)
numbers = [0, -1, 2**31, -2**63, 2**63, 10**18, 10**30, 0.0, -0.0, 1e22, 1e-7, 5e-324, 123456.789, float("nan"), float("inf")]
signs = ["a", '"', "\\", "/", "\n", "\x00", "\x1f", "\x7f", "é", "€", "😀", "\b", "\f", "\x0b"]
def text():
    return "".join(random.choices([*signs, "\ud800"], [50] * len(signs) + [1], k=random.randrange(6)))
def some(depth=0):
    choice = random.randrange(6 if depth < 5 else 4)
    if choice == 0: return random.choice([None, True, False, [], {}, (), 1j])
    if choice == 1: return random.choice(numbers) if random.random() < 0.3 else random.random() * 10 ** random.randrange(-20, 20)
    if choice in (2, 3): return text()
    if choice == 4: return random.choice([list, tuple])(some(depth + 1) for _ in range(random.randrange(4)))
    return {random.choice([text(), text(), text(), text(), 1, None]): some(depth + 1) for _ in range(random.randrange(4))}
def by_json(work, value):
    try: return repr(work(value))
    except (TypeError, ValueError, RecursionError): return None
written = read = 0
for _ in range(20000):
    value = some()
    ours = channel.write(value)
    if ours is not None:
        written += 1
        assert by_json(lambda one: encode(one).encode("utf-8", "surrogatepass"), value) == repr(ours), (value, ours)
    try: data = bytearray(json.dumps(value, ensure_ascii=random.random() < 0.5, indent=random.choice([None, 1])).encode())
    except (TypeError, ValueError): continue
    if random.random() < 0.3: data[random.randrange(len(data))] = random.choice(b'{}[]",:0-.eE\\ \x00\xff1')
    ours = channel.read(bytes(data))
    if ours is not None:
        read += 1
        assert by_json(json.loads, bytes(data)) == repr(ours), (data, ours)
pieces = ["{", "}", "[", "]", ",", ":", '"', '"a"', '"a":', '"a":1,', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00\\ud83d"',
    '"\\u12"', '"\\x"', '"\\/\\b\\f\\n\\r\\t\\\\\\""', '"\t"', "\ufeff", " ", "\t", "\r\n", "\f", "0", "-0", "01", "-", "+1", "1.", ".5", "0.5",
    "1e5", "1E+05", "1e-400", "1e400", "-0.0e0", "9" * 19, "9" * 5000, "123456789.123456789", "true", "false", "null", "nul", "NaN", "-Infinity"]
whole = 0
for _ in range(100000):
    line = "".join(random.choices(pieces, k=random.randrange(1, 7)))
    if random.random() < 0.7: line = random.choice(["[%s]", '{"a":%s}', '[0,%s]', '[{"a":%s,"b":[]}]', " %s\n"]) % line
    data = line.encode()
    if random.random() < 0.1: data = data[:random.randrange(len(data))]
    ours = channel.read(data)
    if ours is not None:
        whole += 1
        assert by_json(json.loads, data) == repr(ours), (data, ours)
deep = []
for _ in range(100000): deep = [deep]
circle = []
circle.append(circle)
assert channel.write(deep) is None and channel.write(circle) is None and channel.read(b"[" * 100000) is None
print(written, read, whole)
`;

(existsSync(pythonChannel) ? test : test.skip)(
  'the channel reads and writes JSON as the module json does',
  async () => {
    const { stdout } = await promisify(execFile)('python3', ['-c', comparison, pythonChannel], { timeout: 60_000 });
    const [written, read, whole] = stdout.split(' ').map(Number);
    expect(written).toBeGreaterThan(5000);
    expect(read).toBeGreaterThan(5000);
    expect(whole).toBeGreaterThan(4000);
  },
);
