// Makes build/action.zip: the code, its package.json, and what npm installs for it.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import AdmZip from 'adm-zip';

const here = fileURLToPath(new URL('.', import.meta.url));
const options = ['--omit=dev', '--no-audit', '--no-fund', '--no-package-lock', '--workspaces=false'];
execFileSync('npm', ['install', ...options], { cwd: here, stdio: 'inherit', timeout: 120_000 });

const archive = new AdmZip();
for (const name of ['index.js', 'package.json']) archive.addLocalFile(`${here}${name}`);
archive.addLocalFolder(`${here}node_modules`, 'node_modules');
mkdirSync(`${here}build`, { recursive: true });
archive.writeZip(`${here}build/action.zip`);
console.log(`${here}build/action.zip`);
