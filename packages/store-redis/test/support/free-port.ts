import { createServer, type AddressInfo } from "node:net";

/** A port that nobody listens on now. */
export function freePort(): Promise<number> {
  return listenOnce(0);
}

/** A port for a node of a Cluster, whose second one, 10,000 above, is free too. */
export async function freeNodePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    try {
      await listenOnce(port + 10_000);
      return await listenOnce(port);
    } catch {
      // One of the two is taken: others are not.
    }
  }
}

/** Listens for a moment; rejects when somebody else does. */
async function listenOnce(wanted: number): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(wanted, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
