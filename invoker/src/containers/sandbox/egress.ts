import { isIPv6 } from 'node:net';

/** Addresses and blocks, such as `10.1.2.3` and `fd00::/8`. */
export interface EgressRules {
  readonly deny: readonly string[];
  readonly allow: readonly string[];
}

/** Destinations that functions may connect to: the config's `network`. */
export interface EgressPolicy extends EgressRules {
  /** Rules of single namespaces, which precede those for all. */
  readonly namespaces: Readonly<Record<string, EgressRules>>;
  /** Simultaneous TCP connections of a sandbox, at most. */
  readonly connections: number;
}

/** The policy without any configuration. */
export const defaultEgress: EgressPolicy = { deny: [], allow: [], namespaces: {}, connections: 1024 };

/** Bound on a sandbox's flows other than TCP, per TCP connection. A name server's query is a flow for 30 s. */
export const otherFlowsPerConnection = 8;

/** Link-local addresses, and other addresses at which clouds serve the machine's credentials and user data. */
export const deniedByDefault: readonly string[] = [
  '169.254.0.0/16',
  'fe80::/10',
  '100.100.100.200', // Alibaba Cloud
  '168.63.129.16', // Azure: the agent's server, which hands out certificates and extensions' settings
  '192.0.0.192', // Oracle Cloud, first generation
  '192.80.8.124', // Equinix Metal
  'fd00:ec2::/32', // Amazon EC2: metadata at ::254, credentials of pods at ::23
  'fd20:ce::254', // Google Cloud
  'fd00:c1::a9fe:a9fe', // Oracle Cloud
  'fd00:a9fe:a9fe::1', // Linode
  'fd00:42::42', // Scaleway
];

/** The addresses and blocks of one version of IP. */
export function ofFamily(addresses: readonly string[], family: 4 | 6): string[] {
  return addresses.filter((address) => isIPv6(address.split('/')[0] ?? '') === (family === 6));
}

/** The addresses of name servers in a resolv.conf. */
export function nameServers(resolvConf: string): string[] {
  return [...resolvConf.matchAll(/^\s*nameserver\s+([0-9a-fA-F.:]+)/gm)].map(([, address = '']) => address);
}
