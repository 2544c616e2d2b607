import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A relay to a server on this machine. It can drop all data on open connections, as a failing network does. */
export interface SilentRelay {
  port: number;
  /** Stops forwarding on all connections, present and new, and keeps them open. Present connections never recover. */
  silence(): void;
  /** Forwards data again on connections that are made from now on. */
  heal(): void;
  /** Breaks all connections. Then breaks a connection on which a client sends `text`, `times` times. */
  breakAt(text: string, times: number): void;
  /** Number of connections made so far. */
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
      // A silent connection does not forward the end of one side either.
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
