import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A way to a server on this machine that can fall silent, as a network does that drops what it is given. */
export interface SilentRelay {
  port: number;
  /** Connections there are carry nothing any more, for ever, and stay open; those that come now are like them. */
  silence(): void;
  /** Connections that are made from now on carry data again. */
  heal(): void;
  /** Breaks all connections; then, for so many times, the connection on which a client first sends `text`. */
  breakAt(text: string, times: number): void;
  /** Connections that were made so far. */
  readonly connections: number;
  stop(): Promise<void>;
}

/** Starts a relay to `port` of this machine. */
export async function startSilentRelay(port: number): Promise<SilentRelay> {
  const sockets = new Set<Socket>();
  let isSilent = false;
  let connections = 0;
  let breaking = { text: '', times: 0 };
  const silent = new Set<Socket>();
  const server = createServer((client) => {
    connections++;
    const onward = connect(port, '127.0.0.1');
    for (const [from, to] of [
      [client, onward],
      [onward, client],
    ] as const) {
      sockets.add(from);
      if (isSilent) silent.add(from);
      from.on('data', (data) => {
        if (from === client && breaking.times > 0 && data.includes(breaking.text)) {
          breaking.times--;
          client.destroy();
        } else if (!silent.has(from)) to.write(data);
      });
      // That one side is gone is not heard of either.
      from.on('close', () => {
        sockets.delete(from);
        if (!silent.has(from)) to.destroy();
      });
      from.on('error', () => from.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    silence() {
      isSilent = true;
      for (const socket of sockets) silent.add(socket);
    },
    heal() {
      isSilent = false;
    },
    breakAt(text, times) {
      breaking = { text, times };
      for (const socket of sockets) socket.destroy();
    },
    get connections() {
      return connections;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
