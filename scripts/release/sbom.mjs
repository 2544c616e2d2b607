// The bill of materials of a release, in CycloneDX's JSON: npm's list of the packages, and Node.js.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../fresh.mjs';
import { packages } from './layout.mjs';
import { run } from './run.mjs';

/** The bill of materials as text. Throws an Error with npm's complaint. */
export function billOfMaterials(version) {
  const [nodeVersion] = readFileSync(join(root, 'scripts', 'own-node.txt'), 'utf8').split('\n');
  const workspaces = packages.map((name) => `--workspace=${name}`);
  const listed = run('npm', ['sbom', '--sbom-format=cyclonedx', '--omit=dev', ...workspaces], { cwd: root });
  const bill = JSON.parse(listed);
  bill.metadata.component = { ...bill.metadata.component, name: 'gpuwhisk', version, type: 'application' };
  bill.components.push({
    type: 'application',
    name: 'node',
    version: nodeVersion,
    'bom-ref': `node@${nodeVersion}`,
    purl: `pkg:generic/node@${nodeVersion}`,
    licenses: [{ license: { id: 'MIT' } }],
  });
  return `${JSON.stringify(bill, null, 2)}\n`;
}
