// Runs Ansible's programs in the folder of the playbooks.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const folder = join(root, 'ansible');
const timeoutMs = 600_000;

/** Where npm run test:all installs Ansible: Debian's packages are too old. */
const bin = join(root, 'node_modules/.cache/ansible/bin');

/** Exit code and output of a program of Ansible. */
export interface AnsibleResult {
  code: number | null;
  output: string;
}

/** Runs a program of Ansible in the folder of the playbooks. */
export async function ansible(program: string, args: readonly string[]): Promise<AnsibleResult> {
  const child = spawn(join(bin, program), args, {
    cwd: folder,
    env: { ...process.env, PATH: `${bin}:${process.env.PATH ?? ''}`, ANSIBLE_FORCE_COLOR: '0', NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  return { code, output };
}

/** Runs a playbook on the hosts of an inventory. */
export const playbook = (name: string, inventory: string, args: readonly string[]): Promise<AnsibleResult> =>
  ansible('ansible-playbook', ['-i', inventory, name, ...args]);
