import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import AdmZip from 'adm-zip';

const files: Readonly<Record<string, string>> = {
  'gpuwhisk_sample.py': 'answer = 42\n',
  'gpuwhisk_sample-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: gpuwhisk-sample\nVersion: 1.0\n',
  'gpuwhisk_sample-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
  'gpuwhisk_sample-1.0.dist-info/RECORD': '',
};

/** Makes a Python package in `folder`. Resolves with the environment in which pip takes packages only from there. */
export async function makeWheel(folder: string): Promise<Record<string, string>> {
  await mkdir(folder, { recursive: true });
  // pip runs as another user.
  await chmod(folder, 0o755);
  const wheel = new AdmZip();
  for (const [name, content] of Object.entries(files)) wheel.addFile(name, Buffer.from(content));
  await writeFile(join(folder, 'gpuwhisk_sample-1.0-py3-none-any.whl'), wheel.toBuffer(), { mode: 0o644 });
  return { PIP_NO_INDEX: '1', PIP_FIND_LINKS: folder };
}
