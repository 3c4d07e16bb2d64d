import { byShard } from "./by-shard.ts";
import { placeOf, type StoreKeys, type TaskPlace } from "./store-keys.ts";

/** More would keep a server from others for longer than a millisecond or two. */
const MOST_AT_ONCE = 500;

/** What {@link WatchLooks} works with. */
export interface WatchLooksOptions {
  readonly keys: StoreKeys;
  /** The versions of tasks of one shard, by their keys and in their order. */
  readonly findVersions: (tasks: readonly string[]) => Promise<readonly (string | null)[]>;
  /** The tasks that are watched now. */
  readonly watched: () => Iterable<string>;
  /** Called for a task whose version is another one than at the last look. */
  readonly onHint: (taskId: string) => void;
  /** Called with what a look failed with. */
  readonly onFailure: (error: unknown) => void;
  /** In milliseconds. */
  readonly intervalMs: number;
}

/**
 * Looks for changes while nothing is heard of them: at every interval the versions of all watched tasks, with one command per
 * shard in which there are some. What was not seen before may have changed meanwhile, and counts as changed once.
 */
export class WatchLooks {
  readonly #options: WatchLooksOptions;
  readonly #versions = new Map<string, string | null>();
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(options: WatchLooksOptions) {
    this.#options = options;
  }

  /** Looks from now on, until {@link stop}. Idempotent. */
  start(): void {
    this.#timer ??= setInterval(() => void this.#look(), this.#options.intervalMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#versions.clear();
  }

  /** Never rejects. A look that takes longer than the interval is waited for. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const places = Array.from(this.#options.watched(), placeOf);
    // The next watch starts it again.
    if (places.length === 0) this.stop();
    this.#forgetAllBut(new Set(places.map(({ taskId }) => taskId)));
    // Each shard by itself: in a Cluster the node of another one may be away.
    await Promise.all(Array.from(byShard(places).values(), (shard) => this.#lookAt(shard)));
    this.#isLooking = false;
  }

  async #lookAt(places: readonly TaskPlace[]): Promise<void> {
    const { findVersions, keys, onFailure } = this.#options;
    try {
      for (let start = 0; start < places.length; start += MOST_AT_ONCE) {
        const chunk = places.slice(start, start + MOST_AT_ONCE);
        const tasks = chunk.map(({ member, shard }) => keys.task(shard, member));
        const found = await findVersions(tasks);
        for (const [index, { taskId }] of chunk.entries()) this.#compare(taskId, found[index] ?? null);
      }
    } catch (error) {
      // Of a look that nobody waits for any more nobody needs to hear.
      if (this.#timer !== undefined) onFailure(error);
    }
  }

  #compare(taskId: string, version: string | null): void {
    // Notifications may have come back while the look was under way.
    if (this.#timer === undefined || this.#versions.get(taskId) === version) return;
    this.#versions.set(taskId, version);
    this.#options.onHint(taskId);
  }

  #forgetAllBut(watched: ReadonlySet<string>): void {
    for (const taskId of this.#versions.keys()) if (!watched.has(taskId)) this.#versions.delete(taskId);
  }
}
