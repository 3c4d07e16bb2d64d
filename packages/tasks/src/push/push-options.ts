/** How clients are told of changes, and limits on what they may follow with `subscriptions/listen`. */
export interface PushOptions {
  /** The most tasks that one subscription may name. @default 100 */
  readonly maxTaskIds?: number;
  /** The most subscriptions to tasks that are open at once on this instance, of all clients together. @default 1024 */
  readonly maxSubscriptions?: number;
  /**
   * The most of them that are open at once for one client: over HTTP a user (with `scope: null` nobody is told apart), over stdio
   * the connection. @default 100
   */
  readonly maxSubscriptionsPerClient?: number;
  /**
   * How often an HTTP stream without news shows that it is alive, in milliseconds, for proxies that end what is quiet; `null`:
   * never. A stream that the SDK has a part in follows the SDK's own option. @default 15_000
   */
  readonly keepAliveMs?: number | null;
}

/** {@link PushOptions} with every default filled in. */
export type ResolvedPushOptions = Required<PushOptions>;

/** The longest time that a timer takes. */
const maxTimerMs = 2_147_483_647;

/** Checks the options, once. @throws TypeError, RangeError */
export function resolvePushOptions(options: PushOptions = {}): ResolvedPushOptions {
  if (typeof options !== "object" || options === null) throw new TypeError("push must be an object.");
  const { maxTaskIds, maxSubscriptions, maxSubscriptionsPerClient, keepAliveMs } = options;
  return {
    maxTaskIds: whole("maxTaskIds", maxTaskIds ?? 100),
    maxSubscriptions: whole("maxSubscriptions", maxSubscriptions ?? 1024),
    maxSubscriptionsPerClient: whole("maxSubscriptionsPerClient", maxSubscriptionsPerClient ?? 100),
    keepAliveMs: keepAliveMs === null ? null : whole("keepAliveMs", keepAliveMs ?? 15_000, maxTimerMs),
  };
}

function whole(name: string, value: unknown, max: number = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== "number") throw new TypeError(`push.${name} must be a number.`);
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return value;
  throw new RangeError(`push.${name} must be a whole number from 1.`);
}
