import type { Device, Share } from '@gpuwhisk/common/gpu';
import { ShareError, type ShareClient, type ShareEnforcer } from './share-enforcer.js';
import { tokenLibraryPath, TokenServer, type TokenClient, type TokenServerOptions } from './tokens/token-server.js';

export interface TokensEnforcerOptions extends TokenServerOptions {
  /**
   * MPS, which holds processes to their class; tokens then set the share below the class. Absent: tokens alone enforce
   * shares.
   */
  under?: ShareEnforcer;
}

/**
 * Shares by kernel tokens, alone or below MPS. A library in front of the driver counts a process's launches and delays them.
 * The share of a running process can be changed; terminate() takes effect at its next launch or allocation. A process that
 * bypasses the library, for example with another LD_PRELOAD, is held only by `under`.
 */
export function createTokensEnforcer(options: TokensEnforcerOptions): ShareEnforcer {
  const { under } = options;
  const opened = new Set<string>();
  /** Devices that a process uses together with others: only MPS holds such a process. */
  const gangs = new Set<string>();
  let starting: Promise<TokenServer> | undefined;
  let closing: Promise<void> | undefined;

  /** Whether MPS holds the processes of a device to their class. */
  const isHeld = (device: string): boolean => under !== undefined && under.sharing?.(device)?.isShared !== false;

  const serverFor = async (device: string, slice?: string): Promise<TokenServer> => {
    if (starting === undefined || !opened.has(slice ?? device)) {
      throw new ShareError(`Kernel tokens have not been opened for ${slice ?? device}.`);
    }
    return starting;
  };

  const clientFor = async ({ pid, device, slice }: ShareClient): Promise<[TokenServer, TokenClient]> => {
    const server = await serverFor(device, slice);
    const client = server.clientOf(pid);
    if (client === undefined || client.ticket.device !== device || client.ticket.slice !== slice) {
      throw new ShareError(`Process ${pid} has no tokens for ${slice ?? device}: its launches are not counted.`);
    }
    return [server, client];
  };

  const clients = async (device: string, slice?: string): Promise<ShareClient[]> => {
    const all = (await serverFor(device, slice)).all();
    return all
      .filter(({ ticket }) => ticket.device === device && ticket.slice === slice)
      .flatMap(({ pids }) => [...pids].map((pid) => ({ pid, device, ...(slice !== undefined && { slice }) })));
  };

  /** A share relative to the process's maximum, which below MPS is its class. */
  const tokenShareOf = (device: string, share: Share, shareClass = share.shareClass): Share => {
    const ceiling = shareClass / 100;
    const part = (fraction: number): number => Math.min(fraction, ceiling) / (isHeld(device) ? ceiling : 1);
    return { ...share, shareClass, smRequest: part(share.smRequest), smLimit: part(share.smLimit) };
  };

  const start = (): Promise<TokenServer> =>
    TokenServer.start(options).catch((error: Error) => {
      starting = undefined;
      throw new ShareError(`Kernel tokens: ${error.message}`, { cause: error });
    });

  const end = async (): Promise<void> => {
    opened.clear();
    await (await starting)?.close();
    await under?.close();
  };

  return {
    name: under !== undefined ? 'mps+tokens' : 'tokens',
    adjusts: true,
    async open(device, slice) {
      if (closing !== undefined) throw new ShareError('Kernel tokens are closed.');
      await under?.open(device, slice);
      starting ??= start();
      await starting;
      opened.add(slice ?? device.uuid);
    },
    async settings(device: Device, share, slice) {
      const server = await serverFor(device.uuid, slice);
      gangs.delete(device.uuid);
      const below = (await under?.settings(device, share, slice)) ?? { env: {}, binds: [] };
      return {
        ...below,
        env: {
          CUDA_VISIBLE_DEVICES: slice ?? device.uuid,
          ...below.env,
          LD_PRELOAD: tokenLibraryPath,
          GPUWHISK_TOKENS_SOCKET: server.socketPath,
          GPUWHISK_TOKENS_TICKET: server.ticketFor(device.uuid, tokenShareOf(device.uuid, share), slice),
        },
        binds: [
          ...below.binds,
          { path: tokenLibraryPath, write: false },
          // The folder is mounted, not the socket, as a restarted server makes a new socket in it.
          { path: server.socketFolder, write: true },
        ],
      };
    },
    async gangSettings(devices, share, partsMiB) {
      if (under === undefined || devices.some(({ uuid }) => !isHeld(uuid))) {
        throw new ShareError('Kernel tokens apply to one device: a process on several devices needs MPS.');
      }
      for (const { uuid } of devices) await serverFor(uuid);
      const settings = await under.gangSettings(devices, share, partsMiB);
      for (const { uuid } of devices) gangs.add(uuid);
      return settings;
    },
    ...(under?.isFaulted && { isFaulted: under.isFaulted.bind(under) }),
    ...(under?.sharing && { sharing: under.sharing.bind(under) }),
    ...(under?.foreignWork && { foreignWork: under.foreignWork.bind(under) }),
    ...(under?.giveUp && { giveUp: under.giveUp.bind(under) }),
    ...(under?.reconsider && { reconsider: under.reconsider.bind(under) }),
    ...(under?.limitClients && { limitClients: under.limitClients.bind(under) }),
    async confirm(client) {
      if (!gangs.has(client.device)) await clientFor(client);
      await under?.confirm(client);
    },
    async adjust(client, share, forAnother) {
      const [server, found] = await clientFor(client);
      server.adjust(found, tokenShareOf(client.device, share, found.ticket.share.shareClass), forAnother);
    },
    clients,
    async launches(client) {
      const [server, found] = await clientFor(client);
      const { taken, waits, soloRate, cycles, cycleMs, cycleBatch, state, budget } = server.figuresOf(found);
      const figures = { blocks: taken, waits, soloRate, cycles, cycleMs, cycleBatch, state };
      if (soloRate === 0 || !Number.isFinite(budget)) return figures;
      const whole = isHeld(client.device) ? found.ticket.share.shareClass / 100 : 1;
      return { ...figures, budget: Math.min(1, budget / soloRate) * whole };
    },
    async terminate(client) {
      if (!gangs.has(client.device)) {
        const [server, found] = await clientFor(client);
        server.end(found);
      }
      if (isHeld(client.device)) await under?.terminate(client);
    },
    async check(device, slice) {
      return (await serverFor(device, slice)).problem() ?? (await under?.check(device, slice));
    },
    async shut(device, slice) {
      const place = slice ?? device;
      if (!opened.has(place)) return;
      if ((await clients(device, slice)).length > 0) throw new ShareError(`${place} has clients with kernel tokens.`);
      await under?.shut(device, slice);
      opened.delete(place);
    },
    close: () => (closing ??= end()),
  };
}
