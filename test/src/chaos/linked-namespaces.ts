import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';

/** A network namespace with its own link to the machine. */
export interface LinkedNamespace {
  name: string;
  /** The address of the namespace's end of the link. */
  address: string;
  /** Words that precede the command of a process in the namespace. */
  before: string[];
  /** Takes the link down; packets are lost without an error. */
  cut(): void;
  mend(): void;
}

/** Network namespaces that reach one address of the machine. */
export interface LinkedNamespaces {
  /** The address of the machine that every namespace reaches while its link is up. */
  host: string;
  add(): LinkedNamespace;
  /** Adds a link by which `from` reaches the address of `to`, even while other links are down. */
  join(from: LinkedNamespace, to: LinkedNamespace): void;
  /** Removes all namespaces and links; processes in the namespaces must have ended. */
  remove(): void;
}

const tryIp = (...args: string[]): string | undefined => {
  const { status, stderr, error } = spawnSync('ip', args, { encoding: 'utf8' });
  return status === 0 ? undefined : `ip ${args.join(' ')}: ${error?.message ?? stderr}`;
};
const ip = (...args: string[]): void => {
  const problem = tryIp(...args);
  if (problem !== undefined) throw new Error(problem);
};

/** Prepares addresses for namespaces. Throws if the machine does not allow network namespaces. */
export function openNamespaces(): LinkedNamespaces {
  const id = randomInt(100 * 256);
  // Outside 10.208.0.0/12, the addresses of sandboxes.
  const prefix = `10.${100 + Math.floor(id / 256)}.${id % 256}`;
  const host = `${prefix}.1`;
  const undo: (() => unknown)[] = [];
  const remove = (): void => {
    for (const step of undo.splice(0).reverse()) step();
  };
  const made = (args: string[], unmake: string[]): void => {
    ip(...args);
    undo.push(() => tryIp(...unmake));
  };
  const inside = (name: string, ...args: string[]): void => ip('-n', name, ...args);
  let links = 0;
  /** Names and addresses of both ends of a new link. */
  const nextLink = () => {
    const at = 4 * ++links;
    return {
      ends: [`gt${id}x${at}`, `gt${id}y${at}`],
      addresses: [`${prefix}.${at + 1}`, `${prefix}.${at + 2}`],
    } as const;
  };
  const add = (): LinkedNamespace => {
    const { ends, addresses } = nextLink();
    const [outer, inner] = ends;
    const [gateway, address] = addresses;
    const name = `gwtest-${outer}`;
    made(['netns', 'add', name], ['netns', 'del', name]);
    made(['link', 'add', outer, 'type', 'veth', 'peer', 'name', inner, 'netns', name], ['link', 'del', outer]);
    ip('addr', 'add', `${gateway}/30`, 'dev', outer);
    ip('link', 'set', outer, 'up');
    inside(name, 'addr', 'add', `${address}/30`, 'dev', inner);
    inside(name, 'link', 'set', inner, 'up');
    inside(name, 'link', 'set', 'lo', 'up');
    inside(name, 'route', 'add', 'default', 'via', gateway);
    return {
      ...{ name, address },
      before: ['nsenter', `--net=/run/netns/${name}`],
      cut: () => ip('link', 'set', outer, 'down'),
      mend: () => ip('link', 'set', outer, 'up'),
    };
  };
  const join = (from: LinkedNamespace, to: LinkedNamespace): void => {
    const { ends, addresses } = nextLink();
    inside(from.name, 'link', 'add', ends[0], 'type', 'veth', 'peer', 'name', ends[1], 'netns', to.name);
    for (const [at, { name }] of [from, to].entries()) {
      inside(name, 'addr', 'add', `${addresses[at]}/30`, 'dev', ends[at] ?? '');
      inside(name, 'link', 'set', ends[at] ?? '', 'up');
    }
    inside(from.name, 'route', 'add', to.address, 'via', addresses[1]);
  };
  made(['addr', 'add', `${host}/32`, 'dev', 'lo'], ['addr', 'del', `${host}/32`, 'dev', 'lo']);
  return { host, add, join, remove };
}

/** Why this machine cannot make such namespaces, or undefined if it can. */
export function namespacesLack(): string | undefined {
  let namespaces: LinkedNamespaces | undefined;
  try {
    namespaces = openNamespaces();
    namespaces.add();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    namespaces?.remove();
  }
}
