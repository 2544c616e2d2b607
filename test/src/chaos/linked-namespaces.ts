import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';

/** A network namespace that a link of its own joins with the machine. */
export interface LinkedNamespace {
  name: string;
  /** Its end of the link. */
  address: string;
  /** Words before the command of a process in it. */
  before: string[];
  /** Takes the link down; packets are lost without a word. */
  cut(): void;
  mend(): void;
}

/** Namespaces around one address of the machine. */
export interface LinkedNamespaces {
  /** The machine's address that all of them reach, links that are down aside. */
  host: string;
  add(): LinkedNamespace;
  /** Makes another link, by which `from` reaches the address of `to` even where others are down. */
  join(from: LinkedNamespace, to: LinkedNamespace): void;
  /** Removes all of it; processes in the namespaces must have ended. */
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

/** Opens a place for namespaces. Throws where the machine does not allow that. */
export function openNamespaces(): LinkedNamespaces {
  const id = randomInt(100 * 256);
  // Not where sandboxes have theirs (10.208.0.0/12).
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
  /** A link's names and addresses at both ends. */
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

/** Why there can be no such namespaces here; undefined: there can. */
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
