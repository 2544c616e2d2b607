import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { systemNetwork } from '@gpuwhisk/common/system/network';
import type { Controller } from '@gpuwhisk/controller/create-controller';

/** The listening servers of a controller. */
export interface Servers {
  /** `http://address:port` of the API. */
  readonly url: string;
  /** Where the API gateway is reached; undefined where it is off. */
  readonly gatewayUrl: string | undefined;
  /** Accepts nothing new, lets requests under way end for up to `graceMs`, then cuts what is left. */
  close(graceMs: number): Promise<void>;
}

/** One above the API's: OpenWhisk's standalone has 3233 and 3234. Free ports where the API's port is free. */
function gatewayPortOf(config: Config, apiPort: number): number | false {
  return config.gatewayPort ?? (config.port === 0 || apiPort === 65_535 ? 0 : apiPort + 1);
}

/**
 * Listens for the API and for the gateway. Rejects with the system's error (EADDRINUSE) for the API's port, with
 * ConfigError for the gateway's, and then listens for neither.
 */
export async function listen(config: Config, controller: Controller): Promise<Servers> {
  const { host } = config;
  const urlHost = host.includes(':') ? `[${host}]` : host;
  const api = await systemNetwork.listen(controller.handle, { host, port: config.port });
  const url = `http://${urlHost}:${api.port}`;
  const port = gatewayPortOf(config, api.port);
  if (port === false) return { url, gatewayUrl: undefined, close: (graceMs) => api.close(graceMs) };
  try {
    const gateway = await systemNetwork.listen(controller.handleGateway, { host, port });
    return {
      url,
      gatewayUrl: config.gatewayUrl?.replace(/\/+$/, '') ?? `http://${urlHost}:${gateway.port}`,
      async close(graceMs) {
        await Promise.all([api.close(graceMs), gateway.close(graceMs)]);
      },
    };
  } catch (error) {
    await api.close(0);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error;
    const why = code === 'EACCES' ? 'may not be used by this user' : 'is in use';
    throw new ConfigError(`Port ${port} of ${host} ${why}; choose another for the gateway with --gateway-port.`);
  }
}
