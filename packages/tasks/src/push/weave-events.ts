import type { AuthInfo } from "@longjobs/core";
import { EventWriter, readEvent, toEvent, type EventReader } from "./event-stream.ts";
import {
  acknowledgeTasks,
  endOfSubscription,
  honorsNothing,
  isAnswerTo,
  type Acknowledgement,
} from "./listen-messages.ts";
import type { TaskListen } from "./listen-request.ts";
import type { TaskPush } from "./task-push.ts";
import type { TaskSubscription } from "./task-subscription.ts";
import { watchExpiry } from "./token-expiry.ts";

/** What is woven into the SDK's stream. */
export interface Weft {
  readonly listen: TaskListen;
  readonly acknowledgement: Acknowledgement;
  readonly subscription: TaskSubscription;
  readonly push: TaskPush;
  readonly authInfo: Pick<AuthInfo, "expiresAt">;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
}

/** The body of the answer: the SDK's events, and the notifications of our subscription between them. */
export function weaveEvents(events: EventReader, weft: Weft): ReadableStream<Uint8Array> {
  const { acknowledgement, authInfo, listen, push, signal, subscription } = weft;
  const alone = honorsNothing(acknowledgement);
  const stop = (): void => {
    signal.removeEventListener("abort", stop);
    stopKeepAlive();
    stopExpiry();
    subscription.close();
    // A body that is over cannot be cancelled, and need not be.
    events.cancel().catch(() => undefined);
    writer.close();
  };
  const writer = new EventWriter(stop);
  const stopKeepAlive = alone ? keepAlive(writer, push) : () => undefined;
  // Broken off, not ended: a client comes back with a new token.
  const stopExpiry = watchExpiry(authInfo, push, stop);
  signal.addEventListener("abort", stop);
  writer.write(toEvent(acknowledgeTasks(acknowledgement, subscription.taskIds)));
  // An SDK that keeps a stream on which it has nothing to tell is told to end it.
  if (alone) events.cancel().catch(() => undefined);
  else {
    void relay(events, (event) => {
      if (isAnswerTo(readEvent(event), listen.id)) subscription.close();
      writer.write(event);
      return writer.ready();
    }).finally(stop);
  }
  subscription.start({
    alone,
    ready: () => writer.ready(),
    send: async (message) => writer.write(toEvent(message)),
    end: () => {
      writer.write(toEvent(endOfSubscription(listen.id)));
      stop();
    },
  });
  if (signal.aborted) stop();
  return writer.body;
}

/** Passes the SDK's events on as they are, as fast as they are taken. */
async function relay(events: EventReader, pass: (event: string) => Promise<void>): Promise<void> {
  try {
    for (let event = await events.next(); event !== undefined; event = await events.next()) await pass(event);
  } catch {
    // The SDK's stream broke off, and so does ours.
  }
}

/** The returned function ends it. */
function keepAlive(writer: EventWriter, { keepAliveMs, schedule }: TaskPush): () => void {
  if (keepAliveMs === null) return () => undefined;
  const again = (): void => {
    cancel = schedule(again, keepAliveMs, false);
    writer.keepAlive();
  };
  let cancel = schedule(again, keepAliveMs, false);
  return () => cancel();
}
