// The listening servers of a controller: the API, the API gateway and the console, each on a port of its own.
import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { systemNetwork } from '@gpuwhisk/common/system/network';
import type { HttpHandler, HttpServer, ListenAddress } from '@gpuwhisk/common/system/network';
import type { Controller } from '@gpuwhisk/controller/create-controller';
import type { ConsoleAddress } from '@gpuwhisk/controller/http/moved-sites';
import { passedSockets } from '../process/service.js';

/** The listening servers of a controller. */
export interface Servers {
  /** `http://address:port` of the API. */
  readonly url: string;
  /** Address of the API gateway; undefined if it is off. */
  readonly gatewayUrl: string | undefined;
  /** Address of the console and the documentation; undefined if they are off. */
  readonly console: ConsoleAddress | undefined;
  /** Accepts nothing new, lets open requests end for up to `graceMs`, then cuts the remaining connections. */
  close(graceMs: number): Promise<void>;
}

type Handlers = Pick<Controller, 'handle' | 'handleGateway' | 'handleConsole'>;
type ListenConfig = Pick<
  Config,
  'host' | 'port' | 'apiHost' | 'gatewayPort' | 'gatewayUrl' | 'consolePort' | 'consoleUrl'
>;

/**
 * Listens for the API, the gateway and the console, in this order on the sockets of `passed` if there are any. Rejects with
 * the system's error (EADDRINUSE) for the API's port, with ConfigError for the others, for passed sockets with other addresses
 * than the configuration's, and for a console that would share the origin of tenants' pages; then listens for none.
 */
export async function listen(
  config: ListenConfig,
  handlers: Handlers,
  passed: readonly number[] = passedSockets(process.env),
): Promise<Servers> {
  checkConsoleOrigin(config);
  const { host } = config;
  const sockets = [...passed];
  const urlOf = ({ port }: HttpServer): string => `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const servers: HttpServer[] = [];
  const serve = async (handler: HttpHandler, address: { host: string; port: number }): Promise<HttpServer> => {
    const descriptor = sockets.shift();
    const at: ListenAddress = descriptor === undefined ? address : { descriptor };
    const server = await systemNetwork.listen(handler, at);
    servers.push(server);
    if (descriptor !== undefined) checkPassed(server, address);
    return server;
  };
  let apiPort = config.port;
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all(servers.map((server) => server.close(graceMs)));
  };
  const also = async (setting: OtherPort, handler: HttpHandler): Promise<HttpServer | undefined> => {
    const port = portOf(config, setting, apiPort);
    if (port === false) return undefined;
    return serve(handler, { host, port }).catch((error: unknown) => {
      throw portProblem(error, setting, port, host);
    });
  };
  try {
    const api = await serve(handlers.handle, { host, port: config.port });
    apiPort = api.port;
    const gateway = await also('gatewayPort', handlers.handleGateway);
    const site = await also('consolePort', handlers.handleConsole);
    const { consoleUrl, gatewayUrl } = config;
    return {
      url: urlOf(api),
      gatewayUrl: gateway && (gatewayUrl?.replace(/\/+$/, '') ?? urlOf(gateway)),
      console: site && { url: new URL(consoleUrl ?? urlOf(site)).origin, isConfigured: consoleUrl !== undefined },
      close,
    };
  } catch (error) {
    await close(0);
    throw error;
  }
}

/**
 * Throws ConfigError if a passed socket listens elsewhere than the configuration says, which decides by its host whether weak
 * isolation is accepted.
 */
function checkPassed({ address, port }: HttpServer, wanted: { host: string; port: number }): void {
  const isHost = address === wanted.host || (wanted.host === 'localhost' && ['127.0.0.1', '::1'].includes(address));
  if (isHost && (port === wanted.port || wanted.port === 0)) return;
  throw new ConfigError(
    `systemd listens on ${address}:${port}, but the configuration says ${wanted.host}:${wanted.port}; change one of them ('systemctl edit gpuwhisk.socket').`,
  );
}

type OtherPort = 'gatewayPort' | 'consolePort';

/** Distance from the API's port by default: OpenWhisk's standalone has its gateway one above the API. */
const distances: Readonly<Record<OtherPort, number>> = { gatewayPort: 1, consolePort: 2 };

/** The port that a setting gives; by default one near the API's, or a free one if the API's is free. */
function portOf(config: ListenConfig, setting: OtherPort, apiPort: number): number | false {
  const near = apiPort + distances[setting];
  return config[setting] ?? (config.port === 0 || near > 65_535 ? 0 : near);
}

/** A port that cannot be had as a ConfigError that names the setting; other errors as they are. */
function portProblem(error: unknown, setting: OtherPort, port: number, host: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'EADDRINUSE' && code !== 'EACCES') return error;
  const why = code === 'EACCES' ? 'may not be used by this user' : 'is in use';
  const whose = setting === 'gatewayPort' ? 'gateway' : 'console';
  return new ConfigError(`Port ${port} of ${host} ${why}; choose another for the ${whose} with --set ${setting}=PORT.`);
}

/** Throws ConfigError if `consoleUrl` has the origin of the API or the gateway, where tenants' pages are. */
function checkConsoleOrigin({ consoleUrl, apiHost, gatewayUrl }: ListenConfig): void {
  if (consoleUrl === undefined) return;
  const { origin } = new URL(consoleUrl);
  for (const [name, url] of Object.entries({ apiHost, gatewayUrl })) {
    if (url !== undefined && URL.canParse(url) && new URL(url).origin === origin)
      throw new ConfigError(
        `consoleUrl is ${origin}, as ${name}: pages of web actions would share the console's origin.`,
      );
  }
}
