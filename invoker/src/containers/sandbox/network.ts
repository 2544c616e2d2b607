// The network of sandboxes: addresses and links, claims on both among a host's platforms, and the rules of namespaces.
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { runTool } from '../../host/programs.js';
import type { Call, CallOutcome } from '../container-factory.js';
import type { EgressPolicy } from './egress.js';
import { listFirewalls, raiseFirewall, removeFirewall } from './firewall.js';
import type { Firewall } from './firewall.js';

/** Slots of one platform; the last one is the service's. */
export const maxSlots = 1024;
/** Range of sandboxes' addresses: 256 blocks of 1,024 pairs. */
export const defaultNetworkRange = '10.208.0.0/12';

const addressesPerSlot = 4;
const blockAddresses = maxSlots * addressesPerSlot;
/** Prefix of the names of rules and claims; a part of the data folder's hash follows, as in the names of links. */
const rulesPrefix = 'gpuwhisk_net_';
const hashDigits = 6;
/** Attempts to claim the own name; another platform's clean-up takes less time. */
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
  /**
   * Applies a namespace's rules to a slot's sandbox. Resolves with their removal, or undefined if the namespace has none.
   */
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

/** A block of `range` without any of the host's addresses; `seed` sets where the search begins. */
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

/** Turns on IPv4 forwarding, for good: another platform or program may rely on it later. */
async function allowForwarding(): Promise<void> {
  if ((await readFile(forwardFile, 'utf8')).trim() !== '1') await writeFile(forwardFile, '1');
}

/** Dependencies and settings of openNetwork. */
interface NetworkOptions {
  /** Hash of the data folder, part of the names of links and rules. */
  hash: string;
  /** IPv4 range of sandboxes' addresses. */
  range: string;
  /** The sandbox launcher, which makes links. */
  launcherPath: string;
  /** Listens on an address of the host and resolves with the port; the rules admit sandboxes to the port. */
  serve?: (address: string) => Promise<number>;
  egress: EgressPolicy;
  /** Name servers of sandboxes. */
  nameServers: readonly string[];
  /** As in raiseFirewall. */
  firewallTools?: readonly string[] | undefined;
}

/** Adds an address of the host that only sandboxes may reach. Resolves with the address and its removal. */
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

/** Names of all links; networkInterfaces() leaves out those that do not carry at the moment. */
async function linkNames(): Promise<string[]> {
  const lines = (await readFile('/proc/self/net/dev', 'utf8')).split('\n');
  return lines.flatMap((line) => /^\s*([^\s:]+):/.exec(line)?.[1] ?? []);
}

/**
 * Removes rules and service links of killed platforms, whose data folders may no longer exist. Links of sandboxes have ended
 * with their sandboxes. Rules by iptables are removed only for the same data folder.
 */
async function removeUnclaimed(launcherPath: string): Promise<void> {
  const ofRules = (await listFirewalls(rulesPrefix)).map((name) => name.slice(rulesPrefix.length));
  const ofLinks = (await linkNames()).map((name) => serviceLinks.exec(name)?.[1] ?? '');
  for (const hash of new Set([...ofRules, ...ofLinks])) {
    // The claim keeps a platform that starts now from losing its new rules.
    const release = hash === '' ? undefined : await claim(rulesPrefix + hash);
    if (release === undefined) continue;
    try {
      const link = `gw${hash}host`;
      await removeFirewall(rulesPrefix + hash);
      if ((await linkNames()).includes(link)) await runTool(launcherPath, ['--remove-link', link]);
    } finally {
      await release();
    }
  }
}

/**
 * Claims a name, waiting shortly while another platform cleans up under that name. A name that stays in use keeps its owner;
 * the release does nothing then.
 */
async function claimOwn(name: string): Promise<() => Promise<void>> {
  for (let tries = 0; tries < ownTries; tries += 1) {
    const release = await claim(name);
    if (release !== undefined) return release;
    await sleep(ownRetryMs);
  }
  return () => Promise.resolve();
}

/** The host's addresses, except on links whose names begin with `linkPrefix`. */
function addressesOfOthers(linkPrefix: string): string[] {
  return Object.entries(networkInterfaces())
    .filter(([name]) => !name.startsWith(linkPrefix))
    .flatMap(([, entries]) => (entries ?? []).filter((entry) => entry.family === 'IPv4').map((entry) => entry.address));
}

/** Claims a block of addresses that no other platform has or is about to take. */
async function claimBlock({ range }: NetworkOptions, seed: number, taken: readonly string[]) {
  const others = [...taken];
  for (;;) {
    const block = freeBlock(range, seed, others);
    const release = await claim(`gpuwhisk_block_${toAddress(block)}`);
    if (release !== undefined) return { block, release };
    others.push(toAddress(block));
  }
}

/** Opens the network. Rejects with the reason if the host forbids or lacks a part of it. */
export async function openNetwork(options: NetworkOptions): Promise<ActionNetwork> {
  if (process.getuid?.() !== 0) throw new Error('the network of sandboxes needs root');
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
 * Claims a name by a socket with an abstract address. Like links and rules, the socket belongs to the network namespace, and
 * it ends with its process in any case. Resolves with the release of the claim, or with undefined if the name is claimed
 * already.
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

/** The namespace whose functions a sandbox runs, with the namespace's network rules for the sandbox. */
export class Tenancy {
  private admitted: { namespace: string; done: Promise<void> } | undefined;
  private unbind: (() => Promise<void>) | undefined;

  constructor(
    /** Applies a namespace's rules. Resolves with their removal, or undefined if the namespace has none. */
    private readonly bind: (namespace: string) => Promise<(() => Promise<void>) | undefined>,
    /** Whether a namespace has rules; loads of other namespaces do not wait. */
    private readonly hasRules: (namespace: string) => boolean,
  ) {}

  /** Loads a function once its namespace's rules apply; the call ends as lost if they cannot be applied. */
  admit(namespace: string | undefined, load: () => Call): Call {
    if (namespace === undefined || (!this.admitted && !this.hasRules(namespace))) return load();
    const call = this.enter(namespace).then(() => load());
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

  /** Applies the namespace's rules; rejects if the sandbox is another namespace's. */
  async enter(namespace: string): Promise<void> {
    if (!this.admitted && !this.hasRules(namespace)) return;
    this.admitted ??= { namespace, done: this.hold(namespace) };
    const { admitted } = this;
    await admitted.done;
    if (admitted.namespace !== namespace) throw new Error(`The sandbox is one of namespace '${admitted.namespace}'.`);
  }

  /** Removes the rules after the sandbox has ended. */
  async end(): Promise<void> {
    await this.admitted?.done.catch(() => undefined);
    await this.unbind?.();
  }

  private async hold(namespace: string): Promise<void> {
    this.unbind = await this.bind(namespace);
  }
}
