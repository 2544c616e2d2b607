// The playbooks against a machine with systemd that has every role.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runBinary, wskBinary } from '../cli/wsk-process.js';
import { until } from '../platform/running-platform.js';
import { startMachine, type Machine } from './machine.js';
import { playbook } from './playbooks.js';
import { kafkaPackages, noDeployment } from './requirements.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const caseMs = 900_000;
/** The machine reaches nothing that another version could be fetched from. */
const kind = `nodejs:${process.versions.node.split('.')[0]}`;
/** A function that asks the API for its namespaces, as it was told to reach it. */
const asking = `exports.main = async () => {
  const { __OW_API_HOST: host, __OW_API_KEY: key } = process.env;
  const authorization = 'Basic ' + Buffer.from(key).toString('base64');
  return { namespaces: await (await fetch(host + '/api/v1/namespaces', { headers: { authorization } })).json() };
};`;

if (noDeployment !== undefined && process.env.TEST_DEPLOYMENT === '1') {
  // Past Jest, which keeps what tests print.
  process.stderr.write(`Not tested: the playbooks on a machine with systemd: ${noDeployment}.\n`);
}

(noDeployment === undefined ? describe : describe.skip)('a cluster on a machine with systemd', () => {
  let folder: string;
  const at = (name: string) => join(folder, name);
  let machine: Machine;
  let auth: string;

  const tar = (...args: string[]) => {
    const { status, stderr } = spawnSync('tar', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`tar: ${stderr}`);
  };
  /** What the playbook printed; throws it if the playbook ends otherwise. */
  const run = async (name: string, args: string[] = [], wanted = 0) => {
    const { code, output } = await playbook(name, at('hosts.yml'), args);
    if (code !== wanted) {
      const logs = machine.run('journalctl --no-pager -n 60 -u gpuwhisk-controller -u gpuwhisk-invoker');
      throw new Error(`${name} ended with ${code}: ${output.slice(-3000)}\n${logs}`);
    }
    return output;
  };
  const wsk = async (...args: string[]) => {
    const to = ['-i', '--apihost', `https://${machine.address}`, '--auth', auth];
    const { code, stdout, stderr } = await runBinary(wskBinary, [...to, ...args], { directory: folder });
    if (code !== 0) throw new Error(`wsk ${args.join(' ')}: ${stdout} ${stderr}`);
    return stdout;
  };
  const hello = async () => JSON.parse(await wsk('action', 'invoke', 'hello', '--result')) as unknown;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-deployment-'));
    const made = spawnSync(process.execPath, [join(root, 'scripts/release.mjs'), at('release.tgz')], {
      encoding: 'utf8',
    });
    if (made.status !== 0) throw new Error(`no release: ${made.stderr}`);
    tar('-cf', at('kafka.tar'), '--transform', 's,^,kafka/libs/,', '-C', kafkaPackages, ...readdirSync(kafkaPackages));
    machine = await startMachine();
    machine.run(`cp ${fileURLToPath(new URL('../../src/ansible/nvidia-smi.sh', import.meta.url))} /usr/bin/nvidia-smi`);
    machine.run('chmod 755 /usr/bin/nvidia-smi');
    const couchdb = machine.start([process.execPath, join(root, 'test/engines/couchdb-server.cjs')]);
    const port = await new Promise((resolve, reject) => {
      couchdb.stdout?.once('data', (line) => resolve(Number(line)));
      couchdb.once('exit', () => reject(new Error('the CouchDB-protocol server ended')));
    });
    const hosts = { machine: {} };
    const groups = ['kafka', 'redis', 'controllers', 'invokers', 'gpus', 'edge', 'monitoring'];
    const inventory = {
      all: {
        hosts: { machine: { ansible_host: machine.address } },
        vars: {
          ansible_user: 'root',
          ansible_ssh_executable: machine.ssh,
          ansible_ssh_transfer_method: 'piped',
          ansible_python_interpreter: '/usr/bin/python3',
          gpuwhisk_release: at('release.tgz'),
          gpuwhisk_api_host: machine.address,
          gpuwhisk_couchdb_url: `http://127.0.0.1:${String(port)}`,
          gpuwhisk_settings: { gpu: { manage: { mps: true } } },
          gpu_mig_layout: { '0': ['3g.20gb', '3g.20gb'] },
          kafka_archive: at('kafka.tar'),
          kafka_packages: [],
          kafka_heap_mib: 256,
          prereq_update_cache: false,
        },
        children: Object.fromEntries(groups.map((name) => [name, { hosts }])),
      },
    };
    // JSON is YAML.
    writeFileSync(at('hosts.yml'), JSON.stringify(inventory));
  }, caseMs);

  afterAll(async () => {
    await machine?.stop();
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  test(
    'a dry run succeeds and changes nothing',
    async () => {
      await run('deploy.yml', ['--check']);
      const left = 'ls -d /opt/gpuwhisk /etc/gpuwhisk /opt/kafka /etc/nginx/gpuwhisk /var/lib/nvidia-smi-test/slices';
      expect(machine.run(`${left} 2> /dev/null || true`)).toBe('');
    },
    caseMs,
  );

  test(
    'a deployment serves users over TLS; a second one changes nothing',
    async () => {
      await run('deploy.yml');
      const secrets = join(folder, 'secrets');
      for (const name of readdirSync(secrets)) expect(statSync(join(secrets, name)).mode & 0o077).toBe(0);
      const digits = readFileSync(join(secrets, 'operator-uuid'), 'utf8').trim().toLowerCase();
      const uuid = digits.replace(/^(.{8})(.{4})(.{3})(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5');
      const operator = `${uuid}:${readFileSync(join(secrets, 'operator-key'), 'utf8').trim()}`;
      const to = ['--apihost', `https://${machine.address}`, '-i', '--auth', operator];
      const made = await runBinary(join(root, 'bin/wskadmin'), [...to, 'user', 'create', 'someone'], {
        directory: folder,
      });
      expect(made).toMatchObject({ code: 0 });
      auth = made.stdout.trim();
      await wsk('action', 'create', 'hello', join(root, 'examples/hello/hello.js'), '--kind', kind);
      expect(await hello()).toEqual({ greeting: expect.any(String) as unknown });
      writeFileSync(at('asking.js'), asking);
      await wsk('action', 'create', 'asking', at('asking.js'), '--kind', kind, '-a', 'provide-api-key', 'true');
      const answer = await wsk('action', 'invoke', 'asking', '--result');
      expect(JSON.parse(answer)).toEqual({ namespaces: ['someone'] });
      expect(machine.run('nvidia-smi -L').match(/MIG 3g.20gb/g)).toHaveLength(2);
      expect(machine.run('promtool check config /etc/prometheus/prometheus.yml')).toContain('SUCCESS');

      expect(await run('deploy.yml')).toMatch(/machine +: ok=\d+ +changed=0 /);
    },
    caseMs,
  );

  test(
    'an upgrade puts another release in place, and its actions go on',
    async () => {
      mkdirSync(at('other'));
      tar('-xzf', at('release.tgz'), '-C', at('other'));
      const [name = ''] = readdirSync(at('other'));
      writeFileSync(join(at('other'), name, 'CHANGED'), 'a newer release');
      tar('-czf', at('newer.tgz'), '-C', at('other'), name);
      await run('upgrade.yml', ['-e', `gpuwhisk_release=${at('newer.tgz')}`]);
      expect(machine.run('cat /opt/gpuwhisk/current/CHANGED')).toBe('a newer release');
      expect(machine.run("tr '\\0' ' ' < /proc/$(systemctl show -P MainPID gpuwhisk-invoker)/cmdline")).toContain(
        machine.run('readlink /opt/gpuwhisk/current').trim(),
      );
      await until(
        'an invoker is up again',
        async () => JSON.stringify(await hello().catch(() => ({}))) !== '{}',
        60_000,
      );
    },
    caseMs,
  );

  test(
    'what was backed up comes back',
    async () => {
      await run('backup.yml');
      const [file = ''] = readdirSync(at('backups'));
      await wsk('action', 'delete', 'hello');
      const backup = ['-e', `restore_file=${join(at('backups'), file)}`];
      await run('restore.yml', backup, 2);
      await run('restore.yml', [...backup, '-e', 'restore_overwrite=true']);
      await until('it is served again', async () => JSON.stringify(await hello().catch(() => ({}))) !== '{}', 60_000);
    },
    caseMs,
  );

  test(
    'wiping asks whether it is meant, and leaves nothing of the platform',
    async () => {
      expect(await run('wipe.yml', [], 2)).toContain('wipe=yes');
      await run('wipe.yml', ['-e', 'wipe=yes']);
      const left =
        'ls -d /opt/gpuwhisk /etc/gpuwhisk /var/lib/gpuwhisk /etc/systemd/system/gpuwhisk-* 2> /dev/null || true';
      expect(machine.run(left)).toBe('');
      expect(machine.run('cat /etc/prometheus/*.yml')).not.toContain('gpuwhisk');
      expect(machine.run('promtool check config /etc/prometheus/prometheus.yml')).toContain('SUCCESS');
      await expect(hello()).rejects.toThrow('action invoke hello');
    },
    caseMs,
  );
});
