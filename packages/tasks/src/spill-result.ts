import type { JsonLimits, JsonObject, ResultSpill, SpilledResult, TaskAttempt } from "@longjobs/core";

/** Where large results go, and which ones are large. */
export interface SpillOptions {
  readonly place: ResultSpill;
  /** The largest result that stays in its task, in bytes of JSON text. */
  readonly maxBytes: number;
  /** How long finished tasks stay readable, unless their tool says otherwise; `null` for ever. */
  readonly retentionMs: number | null;
  /** Bounds of a result that may be spilled. */
  readonly limits: JsonLimits;
  readonly now: () => number;
  readonly reportError: (error: unknown) => void;
}

/** Whose result it is. */
export interface ResultOwner {
  readonly tool: string;
  readonly attempt: TaskAttempt;
  readonly scope: string | undefined;
  readonly retentionMs: number | null | undefined;
}

/** A result as it is answered, and where the whole of it went. */
export interface KeptResult {
  readonly result: JsonObject;
  readonly spilled?: SpilledResult;
}

/** What a model sees of a result that is a file: enough to know whether it needs the rest. */
const previewLength = 1_000;

/**
 * Puts a result that is too large for every poll into a file, and answers with how it begins and a link to the whole. A place
 * that fails is reported; the result then stays where it is. Errors stay whole: a model has to read them.
 */
export async function spillIfLarge(
  result: JsonObject,
  owner: ResultOwner,
  options: SpillOptions,
): Promise<KeptResult> {
  if (result["isError"] === true) return { result };
  const bytes = new TextEncoder().encode(JSON.stringify(result));
  if (bytes.length <= options.maxBytes) return { result };
  const { attempt, scope, tool } = owner;
  const retentionMs = owner.retentionMs === undefined ? options.retentionMs : owner.retentionMs;
  try {
    // A file belongs to its task: there has to be one.
    await attempt.promote();
    const spilled = await options.place.spill({
      taskId: attempt.taskId,
      scope,
      name: `${tool}-result.json`,
      mediaType: "application/json",
      bytes,
      untilMs: retentionMs === null ? null : options.now() + retentionMs,
    });
    return { result: toLink(result, spilled), spilled };
  } catch (error) {
    options.reportError(error);
    return { result };
  }
}

/** Deletes what was spilled for an end that was not written. */
export async function discardSpilled(
  spilled: SpilledResult | undefined,
  { place, reportError }: SpillOptions,
): Promise<void> {
  if (spilled === undefined) return;
  try {
    await place.discard(spilled);
  } catch (error) {
    // It expires with the task.
    reportError(error);
  }
}

function toLink(result: JsonObject, spilled: SpilledResult): JsonObject {
  const { mimeType, name, sha256, size, transferId, uri } = spilled;
  const { content: _content, structuredContent: _structured, ...rest } = result;
  const { _meta: meta } = rest as { readonly _meta?: JsonObject };
  const lead = `The result has ${size} bytes of JSON and is kept as the file ${name}; read it through the link. It begins:`;
  return {
    ...rest,
    content: [
      { type: "text", text: `${lead}\n${previewOf(result)}` },
      { type: "resource_link", uri, name, mimeType, size, description: `sha256 ${sha256}` },
    ],
    _meta: { ...meta, "longjobs/spilledResult": { transferId, sha256, size } },
  };
}

function previewOf({ content, structuredContent }: JsonObject): string {
  const texts = (content as readonly { readonly text?: unknown }[]).flatMap(({ text }) =>
    typeof text === "string" ? [text] : [],
  );
  const whole = texts.length > 0 ? texts.join("\n") : JSON.stringify(structuredContent ?? content);
  return whole.length > previewLength ? `${whole.slice(0, previewLength)}…` : whole;
}
