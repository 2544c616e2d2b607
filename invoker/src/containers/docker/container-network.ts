import { readFile } from 'node:fs/promises';
import { findTool, runTool } from '../../host/programs.js';
import type { EgressPolicy } from '../sandbox/egress.js';
import { listFirewalls, raiseFirewall, removeFirewall } from '../sandbox/firewall.js';
import { claim } from '../sandbox/network.js';
import type { Engine, NetworkFacts } from './engine.js';
import { labels } from './images.js';

/** Prefix of the names of rules; the platform's digits follow. */
const rulesPrefix = 'gpuwhisk_docker_';
/** Prefix of the names of bridges, which have at most 15 characters. */
const bridgePrefix = 'gwd';
const bridgeDigits = 10;

/** The network of a platform's containers. */
export interface ContainerNetwork {
  /** The engine's name for the network. */
  readonly name: string;
  /** Address of the host's service for containers, as `address:port`; undefined if containers do not reach the service. */
  readonly service: string | undefined;
  /** Isolation measures that the host lacks, with the consequence of each. */
  readonly weaknesses: readonly string[];
  /** Lines of text about other services that containers lack. */
  readonly notes: readonly string[];
  /** As Firewall.denyNodes; does nothing in an operator's network. */
  denyNodes(addresses: readonly string[]): Promise<void>;
  /** Removes the rules, and the network if the platform made it. Containers must have ended. */
  close(): Promise<void>;
}

/** Dependencies and settings of openContainerNetwork. */
export interface ContainerNetworkOptions {
  engine: Engine;
  /** Twelve hexadecimal digits that tell the platform from others on this host. */
  platform: string;
  /** Name of an operator's network; absent: a network is made for this platform's containers alone. */
  named?: string | undefined;
  /** Listens on an address of the host and resolves with the port; the rules admit containers to the port. */
  serve?: ((address: string) => Promise<number>) | undefined;
  egress: EgressPolicy;
  /** Name servers of containers. */
  nameServers: readonly string[];
}

/** Readies the network of a platform's containers. Rejects with EngineError. */
export function openContainerNetwork(options: ContainerNetworkOptions): Promise<ContainerNetwork> {
  return options.named === undefined ? openOwn(options) : openNamed(options, options.named);
}

/** Opens an operator's network, without rules: rules for its bridge would apply to other programs' containers, too. */
async function openNamed({ engine, serve }: ContainerNetworkOptions, name: string): Promise<ContainerNetwork> {
  const facts = await engine.network(name);
  const notes: string[] = [];
  let service: string | undefined;
  if (facts?.driver !== 'null') {
    notes.push(
      `Containers are in network '${name}' (docker.network): the network's settings decide whether they reach each other and this host.`,
    );
    service = await serveAt(facts?.gateway, name, serve, notes);
  } else if (serve) notes.push(`Functions do not reach the platform's API: network '${name}' has no gateway.`);
  const nothing = (): Promise<void> => Promise.resolve();
  return { name, service, weaknesses: [], notes, denyNodes: nothing, close: nothing };
}

async function serveAt(
  address: string | undefined,
  network: string,
  serve: ContainerNetworkOptions['serve'],
  notes: string[],
): Promise<string | undefined> {
  if (!serve) return undefined;
  if (address === undefined) {
    notes.push(`Functions do not reach the platform's API: network '${network}' has no gateway.`);
    return undefined;
  }
  try {
    return `${address}:${await serve(address)}`;
  } catch (error) {
    notes.push(`Functions do not reach the platform's API at ${address}: ${(error as Error).message}.`);
    return undefined;
  }
}

/** Makes the platform's own bridge, with the firewall rules of sandboxes. */
async function openOwn(options: ContainerNetworkOptions): Promise<ContainerNetwork> {
  const { engine, platform, serve } = options;
  const name = `gpuwhisk-${platform}`;
  const bridge = bridgePrefix + platform.slice(0, bridgeDigits);
  const facts = await ensureNetwork(engine, name, bridge, platform);
  const [weaknesses, notes]: [string[], string[]] = [[], []];
  const rules = rulesPrefix + platform;
  const release = await claim(rules);
  const service = await serveAt(facts.gateway, name, serve, notes);
  let protection: Protection | undefined;
  try {
    protection = await protect(options, { name: rules, bridge, facts, served: service });
  } catch (error) {
    weaknesses.push(
      `Only the Docker engine's rules bound what containers reach on the network: ${(error as Error).message}.`,
    );
  }
  return {
    name,
    service,
    weaknesses,
    notes,
    denyNodes: async (addresses) => protection?.denyNodes(addresses),
    async close() {
      await protection?.remove();
      await release?.();
      await engine.removeNetwork(name);
    },
  };
}

/** Makes the network if the engine lacks it. The engine separates its containers, too, if it may set rules. */
async function ensureNetwork(engine: Engine, name: string, bridge: string, platform: string): Promise<NetworkFacts> {
  const there = await engine.network(name);
  if (there) return there;
  await engine.createNetwork({
    Name: name,
    Driver: 'bridge',
    CheckDuplicate: true,
    EnableIPv6: false,
    Labels: { [labels.platform]: platform },
    Options: { 'com.docker.network.bridge.name': bridge, 'com.docker.network.bridge.enable_icc': 'false' },
  });
  const made = await engine.network(name);
  if (!made) throw new Error(`The Docker engine made the network '${name}' but does not list the network.`);
  return made;
}

interface Protection {
  denyNodes(addresses: readonly string[]): Promise<void>;
  remove(): Promise<void>;
}

/**
 * Rules that separate containers of a bridge: frames between its ports pass no other hook of the host. Containers have no
 * raw sockets and cannot forge their address.
 */
const bridgeRules = (name: string, range: string): string => `table bridge ${name} {
  chain forward {
    type filter hook forward priority 0; policy accept;
    ip saddr ${range} drop
  }
}
`;

/**
 * Rules that let only the invoker's user connect to runtimes, which answer every client. Containers do not reach other
 * networks of the engine, whether or not the engine may set rules.
 */
const hostRules = (name: string, bridge: string, uid: number): string => `table inet ${name}_o {
  chain output {
    type filter hook output priority -10; policy accept;
    oifname "${bridge}" ct state new meta skuid != ${uid} drop
  }
  chain forward {
    type filter hook forward priority -10; policy accept;
    iifname "${bridge}" oifname "docker*" drop
    iifname "${bridge}" oifname "br-*" drop
  }
}
`;

const removalOf = (family: string, name: string): string =>
  `table ${family} ${name} {}\ndelete table ${family} ${name}\n`;
const apartRemoval = (name: string): string => removalOf('bridge', name) + removalOf('inet', `${name}_o`);

/** Removes the rules of killed platforms, whose data folders may no longer exist. */
async function removeUnclaimed(nft: string): Promise<void> {
  const names = (await listFirewalls(rulesPrefix)).map((name) => name.replace(/_o$/, ''));
  for (const name of new Set(names)) {
    // The claim keeps a platform that starts now from losing its new rules.
    const release = await claim(name);
    if (release === undefined) continue;
    try {
      await removeFirewall(name);
      await runTool(nft, ['-f', '-'], apartRemoval(name));
    } finally {
      await release();
    }
  }
}

/** Sets the rules of the platform's own network. Rejects with the reason if the host cannot have the rules. */
async function protect(
  { egress, nameServers }: ContainerNetworkOptions,
  { name, bridge, facts, served }: { name: string; bridge: string; facts: NetworkFacts; served: string | undefined },
): Promise<Protection> {
  const { subnet } = facts;
  const uid = process.getuid?.() ?? 0;
  if (uid !== 0) throw new Error('rules of the host need root');
  // A bridge without containers has no carrier and is missing from os.networkInterfaces().
  if (!(await readFile('/proc/self/net/dev', 'utf8')).includes(`${bridge}:`)) {
    throw new Error(`this process is not in the host's network, where the bridge ${bridge} is`);
  }
  if (subnet === undefined) throw new Error('the network has no range of addresses');
  const nft = await findTool('nft');
  if (nft === undefined) throw new Error('nft is not installed');
  await removeUnclaimed(nft);
  const [address = '', port = ''] = served?.split(':') ?? [];
  const firewall = await raiseFirewall({
    name,
    links: bridge,
    range: subnet,
    egress,
    nameServers,
    ...(served !== undefined && { service: { address, port: Number(port) } }),
  });
  const remove = async (): Promise<void> => {
    await firewall.remove();
    await runTool(nft, ['-f', '-'], apartRemoval(name));
  };
  try {
    await runTool(nft, ['-f', '-'], apartRemoval(name) + bridgeRules(name, subnet) + hostRules(name, bridge, uid));
  } catch (error) {
    await remove();
    throw error;
  }
  return { denyNodes: (addresses) => firewall.denyNodes(addresses), remove };
}
