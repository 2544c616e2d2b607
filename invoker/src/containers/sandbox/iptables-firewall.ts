import { deniedByDefault, ofFamily, otherFlowsPerConnection } from './egress.js';
import type { Firewall, FirewallScope } from './firewall.js';
import { runTool } from '../../host/run-program.js';

type Run = (...args: string[]) => Promise<void>;

/** The rules of one version of IP. */
interface Family {
  version: 4 | 6;
  run: Run;
}

/** Our chains, and what jumps to them. */
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
    ...['-m', 'connlimit', '--connlimit-above', String(count), '--connlimit-mask', version === 4 ? '32' : '128'],
    ...['--connlimit-saddr', '-j', 'DROP'],
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
    // What is left comes from sandboxes, or has nothing to do with them.
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

/** Sets the rules by iptables and, where the kernel has IPv6, ip6tables. Rejects with what a tool said. */
export async function withIptables(
  scope: FirewallScope,
  iptables: string,
  ip6tables: string | undefined,
): Promise<Firewall> {
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

  // A removal fails where an earlier run left nothing, which is the usual case.
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
