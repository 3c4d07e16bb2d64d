import { nodeFiles, type FileLayer } from "@longjobs/store-wal";

/** The real file system with a slower disk: each flush of a file takes `addedMs` longer. */
export function slowFlush(addedMs: number): FileLayer {
  return {
    ...nodeFiles,
    open: async (path, flags) => {
      const file = await nodeFiles.open(path, flags);
      return {
        read: (...place) => file.read(...place),
        write: (...place) => file.write(...place),
        size: () => file.size(),
        identity: () => file.identity(),
        close: () => file.close(),
        flush: async () => {
          await file.flush();
          await preciseDelay(addedMs);
        },
      };
    },
  };
}

/** Timers count whole milliseconds: the rest is waited turn by turn. */
export async function preciseDelay(delayMs: number): Promise<void> {
  const endMs = performance.now() + delayMs;
  await new Promise<void>((resolve) => {
    setTimeout(resolve, Math.floor(delayMs));
  });
  while (performance.now() < endMs) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
}
