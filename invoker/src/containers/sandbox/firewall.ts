// Firewall rules of sandboxes, set by nft or by iptables with the same effect.
import { access } from 'node:fs/promises';
import { findTool, readTool, runTool } from '../../host/programs.js';
import { deniedByDefault, ofFamily, otherFlowsPerConnection } from './egress.js';
import type { EgressPolicy } from './egress.js';

/** Links and addresses that the rules apply to. */
interface FirewallScope {
  /** Names the tables and chains; letters, digits and underscores, at most 20. */
  name: string;
  /** The links of sandboxes, or the bridge of containers: a name, or the beginning of names and `*`. */
  links: string;
  /** Addresses behind the links, such as `10.208.16.0/20`. Packets from other addresses are dropped. */
  range: string;
  /** The one address and port of the host that sandboxes reach, if there is one. */
  service?: { address: string; port: number };
  /** Name servers of sandboxes: their port 53 is reachable in any network. */
  nameServers: readonly string[];
  egress: EgressPolicy;
}

/** Rules that are in force until they are removed. */
export interface Firewall {
  /** Denies the addresses of the platform's nodes and engines; replaces the addresses of the previous call. */
  denyNodes(addresses: readonly string[]): Promise<void>;
  /**
   * Applies a namespace's rules to a link, before the rules for all. Resolves with their removal, or undefined if the
   * namespace has none.
   */
  bind(link: string, namespace: string): Promise<(() => Promise<void>) | undefined>;
  remove(): Promise<void>;
}

/** nft rules that give `verdict` to packets for these addresses. */
function nftTo(addresses: readonly string[], verdict: 'accept' | 'drop'): string[] {
  const families = [
    ['ip', ofFamily(addresses, 4)],
    ['ip6', ofFamily(addresses, 6)],
  ] as const;
  return families
    .filter(([, list]) => list.length > 0)
    .map(([family, list]) => `${family} daddr { ${list.join(', ')} } ${verdict}`);
}

function nftRules({ name, links, range, service, nameServers, egress }: FirewallScope): string {
  const link = `"${links}"`;
  const admitted = service ? `iifname ${link} ip daddr ${service.address} tcp dport ${service.port} accept` : '';
  const unseen = service ? `iifname != "lo" ip daddr ${service.address} drop` : '';
  const names = nftTo(nameServers, 'accept').flatMap((to) =>
    ['udp', 'tcp'].map((protocol) => to.replace(/ accept$/, ` ${protocol} dport 53 accept`)),
  );
  const others = egress.connections * otherFlowsPerConnection;
  const flows = ['ip', 'ip6'].flatMap((family) => [
    `meta l4proto tcp ct state new add @${family}tcp { ${family} saddr ct count over ${egress.connections} } drop`,
    `meta l4proto != tcp ct state new add @${family}other { ${family} saddr ct count over ${others} } drop`,
  ]);
  const flowSets = ['ip', 'ip6'].flatMap((family) =>
    ['tcp', 'other'].map(
      (flow) => `set ${family}${flow} { type ${family === 'ip' ? 'ipv4' : 'ipv6'}_addr; size 65535; flags dynamic; }`,
    ),
  );
  const tenants = Object.values(egress.namespaces).map(
    ({ allow, deny }, at) => `chain tenant${at} {
    ${[...nftTo(allow, 'accept'), ...nftTo(deny, 'drop')].join('\n    ')}
  }`,
  );
  return `table inet ${name} {
  set nodes4 { type ipv4_addr; flags interval; auto-merge; }
  set nodes6 { type ipv6_addr; flags interval; auto-merge; }
  ${flowSets.join('\n  ')}
  map tenants { type ifname : verdict; }
  ${tenants.join('\n  ')}
  chain flows {
    ip saddr != ${range} drop
    ${flows.join('\n    ')}
  }
  chain input {
    type filter hook input priority -10; policy accept;
    iifname ${link} ct state established,related accept
    iifname ${link} jump flows
    ${admitted}
    iifname ${link} drop
    ${unseen}
  }
  chain leaving {
    jump flows
    ${names.join('\n    ')}
    iifname vmap @tenants
    ${nftTo(egress.allow, 'accept').join('\n    ')}
    ip daddr @nodes4 drop
    ip6 daddr @nodes6 drop
    ${nftTo([...deniedByDefault, ...egress.deny], 'drop').join('\n    ')}
  }
  chain forward {
    type filter hook forward priority -10; policy accept;
    iifname ${link} oifname ${link} drop
    iifname ${link} jump leaving
    oifname ${link} ct state established,related accept
    oifname ${link} drop
  }
}
table ip ${name} {
  chain postrouting {
    type nat hook postrouting priority 100; policy accept;
    ip saddr ${range} oifname != ${link} masquerade
  }
}
`;
}

function nftRemoval(name: string): string {
  return `table inet ${name} {}\ndelete table inet ${name}\ntable ip ${name} {}\ndelete table ip ${name}\n`;
}

async function withNft(nft: string, scope: FirewallScope): Promise<Firewall> {
  const { name, egress } = scope;
  const apply = (script: string): Promise<void> => runTool(nft, ['-f', '-'], script);
  await apply(nftRemoval(name) + nftRules(scope));
  const namespaces = Object.keys(egress.namespaces);
  return {
    denyNodes(addresses) {
      const refill = ([4, 6] as const).map((family) => {
        const list = ofFamily(addresses, family);
        const added = list.length === 0 ? '' : `add element inet ${name} nodes${family} { ${list.join(', ')} }\n`;
        return `flush set inet ${name} nodes${family}\n${added}`;
      });
      return apply(refill.join(''));
    },
    async bind(link, namespace) {
      const at = namespaces.indexOf(namespace);
      if (at < 0) return undefined;
      const element = `element inet ${name} tenants { "${link}" : jump tenant${at} }\n`;
      await apply(`add ${element}`);
      return () => apply(`delete ${element}`);
    },
    remove: () => apply(nftRemoval(name)),
  };
}

/** Names of active rules that begin with `prefix`. Empty without nft: chains of iptables are not listed. */
export async function listFirewalls(prefix: string): Promise<string[]> {
  const nft = await findTool('nft');
  if (nft === undefined) return [];
  const tables = await readTool(nft, ['list', 'tables']);
  const names = [...tables.matchAll(/^table \S+ (\S+)$/gm)].map(([, name = '']) => name);
  return [...new Set(names)].filter((name) => name.startsWith(prefix));
}

/** Removes rules that listFirewalls named. */
export async function removeFirewall(name: string): Promise<void> {
  const nft = await findTool('nft');
  if (nft !== undefined) await runTool(nft, ['-f', '-'], nftRemoval(name));
}

/** Whether the kernel has IPv6, under which links assign themselves an address. */
const hasIPv6 = (): Promise<boolean> =>
  access('/proc/net/if_inet6').then(
    () => true,
    () => false,
  );

/**
 * Sets rules by nft or iptables. Sandboxes reach the host's destinations except each other, addresses of the host other than
 * the service's, and addresses that are denied. Denied by default are link-local addresses, clouds' metadata and the
 * platform's nodes. Only the host connects to sandboxes, and only sandboxes and the host connect to the service. The first
 * matching rule holds: a namespace's `allow`, its `deny`, `allow`, the platform's nodes, the defaults and `deny`. Rejects
 * with the reason if the rules cannot be set.
 */
export async function raiseFirewall(
  scope: FirewallScope,
  tools: readonly string[] = ['nft', 'iptables'],
): Promise<Firewall> {
  const [nft, iptables, ip6tables] = await Promise.all(
    ['nft', 'iptables', 'ip6tables'].map((name) =>
      tools.includes(name.replace('6', '')) ? findTool(name) : Promise.resolve(undefined),
    ),
  );
  if (nft !== undefined) return withNft(nft, scope);
  if (iptables === undefined) throw new Error('neither nft nor iptables is installed');
  if (ip6tables === undefined && (await hasIPv6())) throw new Error('iptables is installed, but not ip6tables');
  return withIptables(scope, iptables, ip6tables);
}

type Run = (...args: string[]) => Promise<void>;

/** The rules of one version of IP. */
interface Family {
  version: 4 | 6;
  run: Run;
}

/** The platform's chains, and the jumps to them from built-in chains. */
function chainsOf({ name }: FirewallScope) {
  return {
    input: `${name}_i`,
    forward: `${name}_f`,
    flows: `${name}_c`,
    bound: `${name}_b`,
    nodes: `${name}_d`,
    nat: `${name}_n`,
    tenants: (at: number) => `${name}_t${at}`,
  };
}

const established = ['-m', 'conntrack', '--ctstate', 'ESTABLISHED,RELATED', '-j', 'ACCEPT'];

/** Rules of table `filter`, without the jumps from the built-in chains. */
function filterRules(scope: FirewallScope, version: 4 | 6): string[][] {
  const { links, range, service, nameServers, egress } = scope;
  const chains = chainsOf(scope);
  const link = links.replace(/\*$/, '+');
  const to = (chain: string, addresses: readonly string[], verdict: string, ...match: string[]): string[][] =>
    ofFamily(addresses, version).map((address) => [chain, '-d', address, ...match, '-j', verdict]);
  const isNew = ['-m', 'conntrack', '--ctstate', 'NEW'];
  const above = (count: number): string[] => [
    '-m',
    'connlimit',
    '--connlimit-above',
    String(count),
    '--connlimit-mask',
    version === 4 ? '32' : '128',
    '--connlimit-saddr',
    '-j',
    'DROP',
  ];
  const own = version === 4 ? service : undefined;
  const serviceTo = own ? ['-d', own.address, '-p', 'tcp', '--dport', String(own.port)] : [];
  return [
    ...(version === 4 ? [[chains.flows, '!', '-s', range, '-j', 'DROP']] : []),
    [chains.flows, '-p', 'tcp', ...isNew, ...above(egress.connections)],
    [chains.flows, '!', '-p', 'tcp', ...isNew, ...above(egress.connections * otherFlowsPerConnection)],

    [chains.input, '-i', link, ...established],
    [chains.input, '-i', link, '-j', chains.flows],
    ...(own ? [[chains.input, '-i', link, ...serviceTo, '-j', 'ACCEPT']] : []),
    [chains.input, '-i', link, '-j', 'DROP'],
    ...(own ? [[chains.input, '!', '-i', 'lo', '-d', own.address, '-j', 'DROP']] : []),

    ...Object.values(egress.namespaces).flatMap(({ allow, deny }, at) => [
      ...to(chains.tenants(at), allow, 'ACCEPT'),
      ...to(chains.tenants(at), deny, 'DROP'),
    ]),

    [chains.forward, '-i', link, '-o', link, '-j', 'DROP'],
    [chains.forward, '-o', link, ...established],
    [chains.forward, '-o', link, '-j', 'DROP'],
    // Packets from other interfaces than sandboxes' links are not affected by the rules below.
    [chains.forward, '!', '-i', link, '-j', 'RETURN'],
    [chains.forward, '-j', chains.flows],
    ...['udp', 'tcp'].flatMap((protocol) => to(chains.forward, nameServers, 'ACCEPT', '-p', protocol, '--dport', '53')),
    [chains.forward, '-j', chains.bound],
    ...to(chains.forward, egress.allow, 'ACCEPT'),
    [chains.forward, '-j', chains.nodes],
    ...to(chains.forward, [...deniedByDefault, ...egress.deny], 'DROP'),
    [chains.forward, '-j', 'ACCEPT'],
  ];
}

/** Sets the rules by iptables and, if the kernel has IPv6, by ip6tables. Rejects with a tool's message. */
async function withIptables(scope: FirewallScope, iptables: string, ip6tables: string | undefined): Promise<Firewall> {
  const chains = chainsOf(scope);
  const runOf =
    (tool: string): Run =>
    (...args) =>
      runTool(tool, ['-w', '5', ...args]);
  const families: Family[] = [
    { version: 4, run: runOf(iptables) },
    ...(ip6tables === undefined ? [] : [{ version: 6 as const, run: runOf(ip6tables) }]),
  ];
  const namespaces = Object.keys(scope.egress.namespaces);
  const own = [chains.bound, chains.nodes, chains.flows, ...namespaces.map((_, at) => chains.tenants(at))];
  const jumpsOf = (version: 4 | 6): string[][] => [
    ['filter', 'INPUT', chains.input],
    ['filter', 'FORWARD', chains.forward],
    ...(version === 4 ? [['nat', 'POSTROUTING', chains.nat]] : []),
  ];

  // Removals usually fail, as earlier processes leave no rules behind.
  const tried = (work: Promise<void>): Promise<void> => work.catch(() => undefined);
  const remove = async (): Promise<void> => {
    for (const { version, run } of families) {
      for (const [table = '', builtIn = '', chain = ''] of jumpsOf(version)) {
        await tried(run('-t', table, '-D', builtIn, '-j', chain));
        await tried(run('-t', table, '-F', chain));
        await tried(run('-t', table, '-X', chain));
      }
      for (const chain of own) await tried(run('-F', chain));
      for (const chain of own) await tried(run('-X', chain));
    }
  };
  await remove();
  for (const { version, run } of families) {
    for (const chain of own) await run('-N', chain);
    for (const [table = '', , chain = ''] of jumpsOf(version)) await run('-t', table, '-N', chain);
    for (const rule of filterRules(scope, version)) await run('-A', ...rule);
    if (version === 4) {
      const link = scope.links.replace(/\*$/, '+');
      await run('-t', 'nat', '-A', chains.nat, '-s', scope.range, '!', '-o', link, '-j', 'MASQUERADE');
    }
    for (const [table = '', builtIn = '', chain = ''] of jumpsOf(version)) {
      await run('-t', table, '-I', builtIn, '1', '-j', chain);
    }
  }

  const denied = new Set<string>();
  const nodeRule = (action: '-A' | '-D', address: string): Promise<void>[] =>
    families
      .filter(({ version }) => ofFamily([address], version).length > 0)
      .map(({ run }) => run(action, chains.nodes, '-d', address, '-j', 'DROP'));
  return {
    async denyNodes(addresses) {
      for (const address of new Set(addresses)) {
        if (denied.has(address)) continue;
        await Promise.all(nodeRule('-A', address));
        denied.add(address);
      }
      for (const address of [...denied].filter((each) => !addresses.includes(each))) {
        await Promise.all(nodeRule('-D', address));
        denied.delete(address);
      }
    },
    async bind(link, namespace) {
      const at = namespaces.indexOf(namespace);
      if (at < 0) return undefined;
      const rule = (action: string): Promise<void[]> =>
        Promise.all(families.map(({ run }) => run(action, chains.bound, '-i', link, '-j', chains.tenants(at))));
      await rule('-A');
      return async () => void (await rule('-D'));
    },
    remove,
  };
}
