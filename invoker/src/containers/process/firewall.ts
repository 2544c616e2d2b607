import { findTool, readTool, runTool } from './run-tool.js';

/** What the rules are about. */
export interface FirewallScope {
  /** Names the tables and chains; letters, digits and underscores. */
  name: string;
  /** Beginning of the names of the sandboxes' links. */
  linkPrefix: string;
  /** Their addresses, such as `10.208.16.0/20`. */
  range: string;
  /** The one address and port of the host that sandboxes reach, if there is one. */
  service?: { address: string; port: number };
}

/** Rules that are in force until they are removed. */
export interface Firewall {
  remove(): Promise<void>;
}

const linkLocal = '169.254.0.0/16';

function nftRules({ name, linkPrefix, range, service }: FirewallScope): string {
  const link = `"${linkPrefix}*"`;
  const admitted = service ? `iifname ${link} ip daddr ${service.address} tcp dport ${service.port} accept` : '';
  const unseen = service ? `iifname != "lo" ip daddr ${service.address} drop` : '';
  return `table inet ${name} {
  chain input {
    type filter hook input priority -10; policy accept;
    iifname ${link} ct state established,related accept
    ${admitted}
    iifname ${link} drop
    ${unseen}
  }
  chain forward {
    type filter hook forward priority -10; policy accept;
    iifname ${link} oifname ${link} drop
    iifname ${link} ip daddr ${linkLocal} drop
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
  await runTool(nft, ['-f', '-'], nftRemoval(scope.name) + nftRules(scope));
  return { remove: () => runTool(nft, ['-f', '-'], nftRemoval(scope.name)) };
}

/** The names that begin with `prefix` of rules that are in force. Empty without nft: the chains of iptables are not looked for. */
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

function tcpTo(port: number): string[] {
  return ['-p', 'tcp', '--dport', String(port)];
}

/** Chains of our own, and the jumps to them from the built-in ones. */
function iptablesPlan({ name, linkPrefix, range, service }: FirewallScope): { jumps: string[][]; rules: string[][] } {
  const link = `${linkPrefix}+`;
  const [input, output, nat] = [`${name}_i`, `${name}_f`, `${name}_n`];
  const admitted = service
    ? [['-t', 'filter', '-A', input, '-i', link, '-d', service.address, ...tcpTo(service.port), '-j', 'ACCEPT']]
    : [];
  const unseen = service ? [['-t', 'filter', '-A', input, '!', '-i', 'lo', '-d', service.address, '-j', 'DROP']] : [];
  const established = ['-m', 'conntrack', '--ctstate', 'ESTABLISHED,RELATED', '-j', 'ACCEPT'];
  return {
    jumps: [
      ['filter', 'INPUT', input],
      ['filter', 'FORWARD', output],
      ['nat', 'POSTROUTING', nat],
    ],
    rules: [
      ['-t', 'filter', '-A', input, '-i', link, ...established],
      ...admitted,
      ['-t', 'filter', '-A', input, '-i', link, '-j', 'DROP'],
      ...unseen,
      ['-t', 'filter', '-A', output, '-i', link, '-o', link, '-j', 'DROP'],
      ['-t', 'filter', '-A', output, '-i', link, '-d', linkLocal, '-j', 'DROP'],
      ['-t', 'filter', '-A', output, '-o', link, ...established],
      ['-t', 'filter', '-A', output, '-o', link, '-j', 'DROP'],
      ['-t', 'filter', '-A', output, '-i', link, '-j', 'ACCEPT'],
      ['-t', 'nat', '-A', nat, '-s', range, '!', '-o', link, '-j', 'MASQUERADE'],
    ],
  };
}

async function withIptables(iptables: string, scope: FirewallScope): Promise<Firewall> {
  const { jumps, rules } = iptablesPlan(scope);
  const run = (...args: string[]): Promise<void> => runTool(iptables, ['-w', '5', ...args]);
  const remove = async (): Promise<void> => {
    for (const [table = '', builtIn = '', chain = ''] of jumps) {
      // Fails where an earlier life left nothing, which is the usual case.
      await run('-t', table, '-D', builtIn, '-j', chain).catch(() => undefined);
      await run('-t', table, '-F', chain).catch(() => undefined);
      await run('-t', table, '-X', chain).catch(() => undefined);
    }
  };
  await remove();
  for (const [table = '', , chain = ''] of jumps) await run('-t', table, '-N', chain);
  for (const rule of rules) await run(...rule);
  for (const [table = '', builtIn = '', chain = ''] of jumps) await run('-t', table, '-I', builtIn, '1', '-j', chain);
  return { remove };
}

/**
 * Sets rules by nft or iptables: sandboxes reach what the host reaches, but neither each other, nor any address of
 * the host save the service's, nor link-local ones (where clouds keep their metadata), and nobody reaches them but
 * the host. The service is reached by them and by the host alone. Rejects with a reason if that cannot be had.
 */
export async function raiseFirewall(scope: FirewallScope): Promise<Firewall> {
  const nft = await findTool('nft');
  if (nft !== undefined) return withNft(nft, scope);
  const iptables = await findTool('iptables');
  if (iptables !== undefined) return withIptables(iptables, scope);
  throw new Error('neither nft nor iptables is installed');
}
