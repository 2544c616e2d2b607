// The network of sandboxes: addresses and links, claims on them among the platforms of a host, and the rules of namespaces.
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { runTool } from '../../host/programs.js';
import type { Call, CallOutcome } from '../container-factory.js';
import type { EgressPolicy } from './egress.js';
import { listFirewalls, raiseFirewall, removeFirewall } from './firewall.js';
import type { Firewall } from './firewall.js';

/** Sandboxes that one platform can number, with the last number for the service. */
export const maxSlots = 1024;
/** Where addresses of sandboxes come from: 256 blocks of 1,024 pairs. */
export const defaultNetworkRange = '10.208.0.0/12';

const addressesPerSlot = 4;
const blockAddresses = maxSlots * addressesPerSlot;
/** Of the names of rules and claims; what follows is from the hash of the data folder, as in the names of links. */
const rulesPrefix = 'gpuwhisk_net_';
const hashDigits = 6;
/** Cleaning up after another platform takes less. */
const ownTries = 20;
const ownRetryMs = 100;
const serviceLinks = /^gw([0-9a-f]{6})host$/;
const forwardFile = '/proc/sys/net/ipv4/ip_forward';

/** A sandbox's link to the host. */
interface Veth {
  name: string;
  /** The host's end, which is the sandbox's gateway. */
  outside: string;
  inside: string;
  prefixLength: number;
}

/** The network of the sandboxes of one platform. */
export interface ActionNetwork {
  /** Slots below maxSlots - 1. */
  veth(slot: number): Veth;
  /** As Firewall.denyNodes. */
  denyNodes(addresses: readonly string[]): Promise<void>;
  /** Has the rules of a namespace hold for a slot's sandbox; resolves with the way to end that, or undefined if there are none. */
  bind(slot: number, namespace: string): Promise<(() => Promise<void>) | undefined>;
  /** `address:port` of the host's service for sandboxes; undefined if none was wanted. */
  readonly service: string | undefined;
  /** Removes the rules and the service's address. */
  close(): Promise<void>;
}

function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function toAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}

/** A block of `range` that none of the host's addresses lies in; `seed` picks where the search begins. */
export function freeBlock(range: string, seed: number, hostAddresses: readonly string[]): number {
  const [base = '', length = ''] = range.split('/');
  const blocks = Math.floor(2 ** (32 - Number(length)) / blockAddresses);
  const used = hostAddresses.map(toNumber);
  for (let tried = 0; tried < blocks; tried++) {
    const start = toNumber(base) + ((seed + tried) % blocks) * blockAddresses;
    if (!used.some((address) => address >= start && address < start + blockAddresses)) return start;
  }
  throw new Error(`all of ${range} is in use`);
}

/** It stays on afterwards: another platform or program of the host may rely on it by then. */
async function allowForwarding(): Promise<void> {
  if ((await readFile(forwardFile, 'utf8')).trim() !== '1') await writeFile(forwardFile, '1');
}

/** What openNetwork needs. */
interface NetworkOptions {
  /** Of the data folder: names the links and the rules. */
  hash: string;
  /** Where addresses come from. */
  range: string;
  /** The sandbox launcher, which makes links. */
  launcherPath: string;
  /** Listens on an address of the host and resolves with the port; sandboxes are let through to it. */
  serve?: (address: string) => Promise<number>;
  egress: EgressPolicy;
  /** Of sandboxes. */
  nameServers: readonly string[];
  /** As raiseFirewall's. */
  firewallTools?: readonly string[] | undefined;
}

/** An address of the host's that only sandboxes are let through to, and the way to remove it. */
async function openService(
  options: NetworkOptions,
  link: string,
  address: string,
): Promise<{ service?: { address: string; port: number }; remove(): Promise<void> }> {
  const { serve, launcherPath } = options;
  if (!serve) return { remove: () => Promise.resolve() };
  await runTool(launcherPath, ['--make-link', link, `${link}p`, address]);
  const remove = (): Promise<void> => runTool(launcherPath, ['--remove-link', link]);
  try {
    return { service: { address, port: await serve(address) }, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

const isLink = (name: string): boolean => networkInterfaces()[name] !== undefined;

/**
 * Removes rules and links of platforms that were killed: their data folders may be gone, so that no later process would. The
 * links of their sandboxes went with these. Of rules made with iptables only those of the same data folder are removed.
 */
async function removeUnclaimed(launcherPath: string): Promise<void> {
  const ofRules = (await listFirewalls(rulesPrefix)).map((name) => name.slice(rulesPrefix.length));
  const ofLinks = Object.keys(networkInterfaces()).map((name) => serviceLinks.exec(name)?.[1] ?? '');
  for (const hash of new Set([...ofRules, ...ofLinks])) {
    // Claimed meanwhile, so that a platform that starts now does not lose what it makes.
    const release = hash === '' ? undefined : await claim(rulesPrefix + hash);
    if (release === undefined) continue;
    try {
      const link = `gw${hash}host`;
      await removeFirewall(rulesPrefix + hash);
      if (isLink(link)) await runTool(launcherPath, ['--remove-link', link]);
    } finally {
      await release();
    }
  }
}

/** Claims what has the name, or waits for a moment while another platform cleans it up; one in use stays its user's. */
async function claimOwn(name: string): Promise<() => Promise<void>> {
  for (let tries = 0; tries < ownTries; tries += 1) {
    const release = await claim(name);
    if (release !== undefined) return release;
    await sleep(ownRetryMs);
  }
  return () => Promise.resolve();
}

/** The host's, those of links that begin with `linkPrefix` aside. */
function addressesOfOthers(linkPrefix: string): string[] {
  return Object.entries(networkInterfaces())
    .filter(([name]) => !name.startsWith(linkPrefix))
    .flatMap(([, entries]) => (entries ?? []).filter((entry) => entry.family === 'IPv4').map((entry) => entry.address));
}

/** A block of addresses that no other platform has, nor is about to take. */
async function claimBlock({ range }: NetworkOptions, seed: number, taken: readonly string[]) {
  const others = [...taken];
  for (;;) {
    const block = freeBlock(range, seed, others);
    const release = await claim(`gpuwhisk_block_${toAddress(block)}`);
    if (release !== undefined) return { block, release };
    others.push(toAddress(block));
  }
}

/** Readies the network. Rejects with a reason where the host forbids or lacks it. */
export async function openNetwork(options: NetworkOptions): Promise<ActionNetwork> {
  if (process.getuid?.() !== 0) throw new Error('it needs root');
  const seed = Number.parseInt(options.hash.slice(0, 8), 16);
  const hash = options.hash.slice(0, hashDigits);
  const linkPrefix = `gw${hash}`;
  const name = rulesPrefix + hash;
  const undo: (() => Promise<void>)[] = [await claimOwn(name)];
  const close = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    await removeUnclaimed(options.launcherPath);
    const { block, release } = await claimBlock(options, seed, addressesOfOthers(linkPrefix));
    undo.push(release);
    const serviceAddress = toAddress(block + (maxSlots - 1) * addressesPerSlot + 1);
    const { service, remove } = await openService(options, `${linkPrefix}host`, serviceAddress);
    undo.push(remove);
    const firewall: Firewall = await raiseFirewall(
      {
        name,
        links: `${linkPrefix}*`,
        nameServers: options.nameServers,
        egress: options.egress,
        range: `${toAddress(block)}/${32 - Math.log2(blockAddresses)}`,
        ...(service && { service }),
      },
      options.firewallTools,
    );
    undo.push(() => firewall.remove());
    await allowForwarding();
    const linkOf = (slot: number): string => `${linkPrefix}${slot.toString(36)}`;
    return {
      veth(slot) {
        const base = block + slot * addressesPerSlot;
        return {
          name: linkOf(slot),
          outside: toAddress(base + 1),
          inside: toAddress(base + 2),
          prefixLength: 30,
        };
      },
      denyNodes: (addresses) => firewall.denyNodes(addresses),
      bind: (slot, namespace) => firewall.bind(linkOf(slot), namespace),
      service: service && `${service.address}:${service.port}`,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Says that what has this name is in use: a socket with an abstract name, which like links and rules is one of the network
 * namespace, and which is gone with its process, however that ends. Resolves with the way to give it up, or with undefined
 * if it is claimed already.
 */
export function claim(name: string): Promise<(() => Promise<void>) | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen(`\0${name}`, () => {
      server.unref();
      resolve(() => new Promise((closed) => server.close(() => closed())));
    });
  });
}

/** The namespace whose functions a sandbox runs, and the rules of the network that hold for it because of that. */
export class Tenancy {
  private admitted: { namespace: string; done: Promise<void> } | undefined;
  private unbind: (() => Promise<void>) | undefined;

  constructor(
    /** Has a namespace's rules hold; resolves with the way to end that, or undefined if it has none. */
    private readonly bind: (namespace: string) => Promise<(() => Promise<void>) | undefined>,
    /** Namespaces with rules; of others nothing is waited for. */
    private readonly hasRules: (namespace: string) => boolean,
  ) {}

  /** Loads a function once the rules of its namespace hold; the call is lost if they cannot be had. */
  admit(namespace: string | undefined, load: () => Call): Call {
    if (namespace === undefined || (!this.admitted && !this.hasRules(namespace))) return load();
    this.admitted ??= { namespace, done: this.hold(namespace) };
    const { admitted } = this;
    const call = admitted.done.then(() => {
      if (admitted.namespace !== namespace) throw new Error(`The sandbox is one of namespace '${admitted.namespace}'.`);
      return load();
    });
    const lost: CallOutcome = { type: 'lost', oomKilled: false };
    return {
      outcome: call.then(
        ({ outcome }) => outcome,
        () => lost,
      ),
      logs: call.then(
        ({ logs }) => logs,
        (error: unknown) => [`The rules of the network for '${namespace}' do not hold: ${String(error)}`],
      ),
    };
  }

  /** Ends the rules; the sandbox has ended. */
  async end(): Promise<void> {
    await this.admitted?.done.catch(() => undefined);
    await this.unbind?.();
  }

  private async hold(namespace: string): Promise<void> {
    this.unbind = await this.bind(namespace);
  }
}
