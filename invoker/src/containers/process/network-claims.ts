import { createServer } from 'node:net';

/**
 * Says that what has this name is in use: a socket with an abstract name, which like links and rules is one of the network
 * namespace, and which is gone with its process, however that ends. Resolves with the way to give it up, or with undefined
 * where somebody has claimed it already.
 */
export function claim(name: string): Promise<(() => Promise<void>) | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen(`\0${name}`, () => {
      server.unref();
      resolve(() => new Promise((closed) => server.close(() => closed())));
    });
  });
}
