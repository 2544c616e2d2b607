// Runs the playbooks on one machine with systemd that has every role.
import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runBinary, wskBinary } from '../cli/wsk-process.js';
import { until } from '../support/running-platform.js';
import { startMachine, type Machine } from './machine.js';
import { playbook } from './playbooks.js';
import { kafkaPackages, noDeployment } from './requirements.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const caseMs = 900_000;
/** The kind of this machine's own Node.js: the test machine has no network to download another version. */
const kind = `nodejs:${process.versions.node.split('.')[0]}`;
/** A function that asks the API for its namespaces, at the API host from its environment. */
const asking = `exports.main = async () => {
  const { __OW_API_HOST: host, __OW_API_KEY: key } = process.env;
  const authorization = 'Basic ' + Buffer.from(key).toString('base64');
  return { namespaces: await (await fetch(host + '/api/v1/namespaces', { headers: { authorization } })).json() };
};`;

/** A function that tries to connect to the engines, as a hostile function would. */
const reaching = `exports.main = async ({ places }) => {
  const attempt = ([host, port]) => new Promise((resolve) => {
    const socket = require('node:net').connect({ host, port, timeout: 1000 });
    const end = (how) => { socket.destroy(); resolve(how); };
    socket.once('connect', () => end('connected')).once('timeout', () => end('dropped')).once('error', ({ code }) => end(code));
  });
  return { reached: await Promise.all(places.map(attempt)) };
};`;

if (noDeployment !== undefined && process.env.TEST_DEPLOYMENT === '1') {
  // Written to stderr directly, because Jest intercepts the console output of tests.
  process.stderr.write(`Not tested: the playbooks on a machine with systemd: ${noDeployment}.\n`);
}

(noDeployment === undefined ? describe : describe.skip)('a cluster on a machine with systemd', () => {
  let folder: string;
  const at = (name: string) => join(folder, name);
  let machine: Machine;
  let auth: string;
  let couchdbPort: number;

  const tar = (...args: string[]) => {
    const { status, stderr } = spawnSync('tar', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`tar: ${stderr}`);
  };
  /** Output of the playbook; throws with that output if the exit code is not `wanted`. */
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

  /** Signs the CouchDB-protocol server's certificate. Creates the authority before the first deployment would. */
  const signCertificate = () => {
    const tls = join(at('secrets'), 'tls');
    mkdirSync(tls, { recursive: true, mode: 0o700 });
    const openssl = (...args: string[]) => {
      const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8', cwd: tls });
      if (status !== 0) throw new Error(`openssl: ${stderr}`);
    };
    const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2'];
    openssl(...made, '-subj', '/CN=test', '-keyout', 'ca.key', '-out', 'ca.crt');
    const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-addext', `subjectAltName=IP:${machine.address}`];
    const own = ['-addext', 'basicConstraints=CA:FALSE', '-keyout', at('couchdb.key'), '-out', at('couchdb.crt')];
    openssl(...made, ...signed, '-subj', '/CN=couchdb', ...own);
  };

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-deployment-'));
    const asked = ['--only', 'tarball', '--arch', 'amd64', '--out', at('releases')];
    const made = spawnSync(process.execPath, [join(root, 'scripts/release.mjs'), ...asked], { encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`no release: ${made.stderr}`);
    if (made.status !== 0) throw new Error(`no release: ${made.stderr}`);
    renameSync(made.stdout.trim(), at('release.tgz'));
    tar('-cf', at('kafka.tar'), '--transform', 's,^,kafka/libs/,', '-C', kafkaPackages, ...readdirSync(kafkaPackages));
    machine = await startMachine();
    machine.run(`cp ${fileURLToPath(new URL('../../src/ansible/nvidia-smi.sh', import.meta.url))} /usr/bin/nvidia-smi`);
    machine.run('chmod 755 /usr/bin/nvidia-smi');
    signCertificate();
    const accounts = ['COUCHDB_ACCOUNTS=1', 'COUCHDB_USER=admin', 'COUCHDB_PASSWORD=secret'];
    // Written inside the machine: its /tmp is not this machine's.
    for (const name of ['couchdb.crt', 'couchdb.key']) {
      machine.run(`printf '%s' '${readFileSync(at(name), 'utf8')}' > /var/lib/test-${name}`);
    }
    const tls = ['COUCHDB_CERT=/var/lib/test-couchdb.crt', 'COUCHDB_KEY=/var/lib/test-couchdb.key'];
    const server = [process.execPath, join(root, 'test/engines/couchdb-server.cjs'), '0', '', machine.address];
    const couchdb = machine.start(['env', ...accounts, ...tls, ...server]);
    couchdbPort = await new Promise((resolve, reject) => {
      couchdb.stdout?.once('data', (line) => resolve(Number(line)));
      couchdb.once('exit', () => reject(new Error('the CouchDB-protocol server ended')));
    });
    // With control groups of version 1, the container gets no control groups with limits.
    const controllers = machine.run('cat /sys/fs/cgroup/cgroup.controllers 2> /dev/null || true');
    const allowWeakIsolation = !['memory', 'pids'].every((one) => controllers.includes(one));
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
          gpuwhisk_couchdb_url: `https://admin:secret@${machine.address}:${String(couchdbPort)}`,
          gpuwhisk_settings: { gpu: { manage: { mps: true } }, ...(allowWeakIsolation && { allowWeakIsolation }) },
          gpu_mig_layout: { '0': ['3g.20gb', '3g.20gb'] },
          kafka_archive: at('kafka.tar'),
          kafka_packages: [],
          kafka_heap_mib: 256,
          prereq_update_cache: false,
        },
        children: Object.fromEntries(groups.map((name) => [name, { hosts }])),
      },
    };
    // JSON is valid YAML.
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
      for (const name of ['machine.key', 'machine.crt'])
        expect(statSync(join(secrets, 'tls', name)).mode & 0o077).toBe(0);
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
      const curl = `curl -sk -o /dev/null -w '%{http_code} %{redirect_url}' https://${machine.address}`;
      expect(machine.run(`${curl}/console`)).toBe(`302 https://${machine.address}:8443/console`);
      expect(machine.run(`${curl}:8443/console/`)).toBe('200 ');
      expect(machine.run(`${curl}:8443/api/v1/web/someone/default/hello.json`)).toBe('401 ');
      expect(machine.run('nvidia-smi -L').match(/MIG 3g.20gb/g)).toHaveLength(2);
      expect(machine.run('promtool check config /etc/prometheus/prometheus.yml')).toContain('SUCCESS');
      expect(machine.run(`promtool test rules '${join(root, 'test/src/ansible/alerts.yml')}'`)).toContain('SUCCESS');

      expect(await run('deploy.yml')).toMatch(/machine +: ok=\d+ +changed=0 /);
    },
    caseMs,
  );

  test(
    'engines are encrypted and want a password; functions reach none of them, and invokers have an account of their own',
    async () => {
      const { address } = machine;
      const ca = '/etc/gpuwhisk/ca.crt';
      const authority = readFileSync(join(at('secrets'), 'tls', 'ca.crt'), 'utf8');
      expect(machine.run(`redis-cli --tls --cacert ${ca} -h ${address} ping 2>&1`)).toContain('NOAUTH');
      expect(machine.run(`timeout 5 redis-cli -h ${address} ping 2>&1 || true`)).not.toContain('PONG');
      const couchdb = `https://${address}:${String(couchdbPort)}/whisk_subjects`;
      expect(machine.run(`curl -s -o /dev/null -w '%{http_code}' --cacert ${ca} ${couchdb}`)).toBe('401');
      const kafka = {
        clientId: 'test',
        brokers: [`${address}:9092`],
        logLevel: logLevel.NOTHING,
        retry: { retries: 0 },
      };
      for (const ssl of [false, { ca: authority }]) {
        const admin = new Kafka({ ...kafka, ssl }).admin();
        await expect(admin.connect().then(() => admin.listTopics())).rejects.toThrow();
        await admin.disconnect();
      }
      const invoker = machine.run('cat /etc/gpuwhisk/invoker.json');
      expect(invoker).toContain('https://gpuwhisk-invoker:');
      expect(invoker).not.toContain('admin:secret');

      writeFileSync(at('reaching.js'), reaching);
      await wsk('action', 'create', 'reaching', at('reaching.js'), '--kind', kind);
      const places = [9092, 9093, 6379, couchdbPort, 10001, 10003, 12001].map((port) => [address, port]);
      const answer = await wsk('action', 'invoke', 'reaching', '--result', '-p', 'places', JSON.stringify(places));
      expect(JSON.parse(answer)).toEqual({ reached: places.map(() => 'dropped') });
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
      // The playbook ends only after the invoker takes work: so a cluster restarts its invokers one after the other.
      const health = machine.run(`curl -s http://${machine.address}:10001/invokers`);
      expect(Object.values(JSON.parse(health) as Record<string, string>)).toEqual(['up']);
      expect(await hello()).toEqual({ greeting: expect.any(String) as unknown });
      for (const unit of ['gpuwhisk-controller', 'gpuwhisk-invoker']) {
        expect(machine.run(`systemctl show -P Type -P StatusText -P StartLimitIntervalUSec ${unit}`).trim()).toBe(
          'notify\nIt serves.\n0',
        );
      }
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
