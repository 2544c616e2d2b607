import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Config } from '@gpuwhisk/common/config';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

/** Interval of resolving the names of engines and of looking for other nodes, ms. */
const refreshMs = 30_000;

/** Links of sandboxes and bridges of containers, which have no meaning on other machines. */
const inner = /^(gw|docker|br-[0-9a-f]{12}$|veth|virbr|cni)/;

/** Addresses by which other machines reach this one. */
export function addressesOfThisMachine(): string[] {
  return Object.entries(networkInterfaces())
    .filter(([name]) => !inner.test(name))
    .flatMap(([, entries]) => entries ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
    .map(({ address }) => address);
}

/** Names or addresses of the engines that the configuration names. */
export function engineHosts({ couchdb, kafka, redis }: Pick<Config, 'couchdb' | 'kafka' | 'redis'>): string[] {
  const ofUrl = (url: string): string => new URL(url).hostname.replace(/^\[|\]$/g, '');
  const ofBroker = (broker: string): string => broker.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
  return [
    ...(couchdb === undefined ? [] : [ofUrl(couchdb.url)]),
    ...(redis === undefined ? [] : [ofUrl(redis.url)]),
    ...(kafka?.brokers.split(',').map(ofBroker) ?? []),
  ];
}

/** Dependencies of PlatformAddresses. */
interface PlatformAddressesOptions {
  /** Names or addresses of engines. */
  hosts: readonly string[];
  /** Addresses of the present nodes. */
  nodes(): readonly string[];
  /** Called with all addresses whenever they have changed. */
  deny(addresses: readonly string[]): Promise<void>;
  clock: Clock;
  logger: Logger;
  /** Default: the system's resolver. Rejects if there is no such name. */
  resolve?: (host: string) => Promise<string[]>;
}

/** Keeps the addresses of the platform's engines and nodes denied to functions. */
export class PlatformAddresses {
  /** By host; the addresses of a name that cannot be resolved for a while stay. */
  private readonly resolved = new Map<string, string[]>();
  private denied = '';
  private timer: Timer | undefined;
  private closed = false;

  constructor(private readonly options: PlatformAddressesOptions) {}

  /** Denies the present addresses, and new ones as they appear. Rejects if the rules cannot be set. */
  async open(): Promise<void> {
    await this.refresh();
    this.again();
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  private again(): void {
    if (this.closed) return;
    this.timer = this.options.clock.setBackgroundTimer(refreshMs, () => {
      void this.refresh()
        .catch((error: unknown) =>
          this.options.logger.error(
            { error: String(error) },
            'addresses of the platform could not be denied to functions',
          ),
        )
        .then(() => this.again());
    });
  }

  private async refresh(): Promise<void> {
    const { hosts, nodes, deny } = this.options;
    await Promise.all(hosts.map((host) => this.resolve(host)));
    const all = [...new Set([...[...this.resolved.values()].flat(), ...nodes()])].sort();
    if (this.closed || all.join() === this.denied) return;
    await deny(all);
    this.denied = all.join();
  }

  private async resolve(host: string): Promise<void> {
    const { resolve = systemResolve, logger } = this.options;
    try {
      this.resolved.set(host, isIP(host) === 0 ? await resolve(host) : [host]);
    } catch (error) {
      logger.warn({ host, error: (error as Error).message }, 'the name of an engine cannot be resolved');
    }
  }
}

async function systemResolve(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}
