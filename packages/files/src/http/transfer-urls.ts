import { canonicalJson, isTaskId, type JsonValue } from "@longjobs/core";
import type { PublishPolicy } from "../disk/publish.ts";
import type { TransferRecord } from "../transfer-record.ts";
import type { SigningKeys } from "./signing-keys.ts";
import type { UploadGrant } from "./upload-grant.ts";

/** What a URL lets its bearer do. */
export const urlMethods = {
  upload: "OPTIONS,HEAD,PATCH,DELETE",
  download: "OPTIONS,HEAD,GET",
} as const;

/** What a creation URL carries. */
export type GrantClaims = {
  readonly scope: string | null;
  readonly root: string;
  readonly directory: string;
  readonly ifExists: PublishPolicy;
  readonly maxFileBytes: number | null;
  readonly untilMs: number;
};

/** What {@link TransferUrls} needs. */
export interface TransferUrlsOptions {
  readonly keys: SigningKeys;
  /** Where clients reach the endpoint; never taken from a request. */
  readonly baseUrl: string;
  readonly downloadUrlMs: number;
  readonly now: () => number;
}

/**
 * Signed URLs: whoever has one needs nothing else. An upload URL lives as long as its transfer; a download URL is
 * short-lived; a creation URL says itself what it is good for. The signature is over the scope, the transfer, the
 * methods, the size and the expiry: none of them can be changed, and no URL can be moved to another transfer.
 */
export class TransferUrls {
  readonly #options: TransferUrlsOptions;

  constructor(options: TransferUrlsOptions) {
    this.#options = options;
  }

  /** The URL of an open transfer. */
  async urlOf(record: TransferRecord): Promise<string> {
    const { baseUrl, downloadUrlMs, keys, now } = this.#options;
    const untilMs = record.data.direction === "upload" ? 0 : now() + downloadUrlMs;
    const signature = await keys.sign(signedText(record, untilMs));
    return `${baseUrl}/${record.taskId}?sig=${untilMs.toString(36)}.${signature}`;
  }

  /** True when this is the signature of a URL of this transfer, and still good. */
  async isSigned(record: TransferRecord | undefined, given: string | null): Promise<boolean> {
    const { keys, now } = this.#options;
    const [until = "", ...signature] = (given ?? "").split(".");
    const untilMs = /^[0-9a-z]{1,10}$/.test(until) ? Number.parseInt(until, 36) : Number.NaN;
    // For an unknown transfer too: it takes as long as one with a wrong signature.
    const text = record === undefined ? "unknown" : signedText(record, untilMs);
    const isRight = await keys.verify(text, signature.join("."));
    return isRight && record !== undefined && (untilMs === 0 || untilMs > now());
  }

  /** The URL that takes POST. */
  async creationUrl(grant: UploadGrant): Promise<string> {
    const { baseUrl, keys, now } = this.#options;
    const claims: GrantClaims = {
      scope: grant.scope ?? null,
      root: grant.root,
      directory: grant.directory ?? "",
      ifExists: grant.ifExists ?? "version",
      maxFileBytes: grant.maxFileBytes ?? null,
      untilMs: now() + (grant.validForMs ?? 3_600_000),
    };
    const payload = Buffer.from(canonicalJson(claims)).toString("base64url");
    return `${baseUrl}?grant=${payload}.${await keys.sign(grantText(payload))}`;
  }

  /** What a creation URL allows; `undefined` when it was not signed here, or not any more. */
  async readGrant(given: string | null): Promise<GrantClaims | undefined> {
    const [payload = "", ...signature] = (given ?? "").split(".");
    if (!(await this.#options.keys.verify(grantText(payload), signature.join(".")))) return undefined;
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as GrantClaims;
    return claims.untilMs > this.#options.now() ? claims : undefined;
  }
}

/** The id of a transfer in a path of the endpoint; hostile ones are none. */
export function transferIdIn(segment: string): string | undefined {
  return isTaskId(segment) ? segment : undefined;
}

function signedText({ taskId, scope, data }: TransferRecord, untilMs: number): string {
  const size =
    data.direction === "upload" ? (data.sizedLater === true ? null : data.sizeBytes) : data.pin.sizeBytes;
  return purposed("longjobs transfer url 1", [
    scope ?? null,
    taskId,
    urlMethods[data.direction],
    size,
    untilMs,
  ]);
}

function grantText(payload: string): string {
  return purposed("longjobs creation url 1", payload);
}

/** The purpose is part of what is signed: a signature made for one thing is none for another. */
function purposed(purpose: string, signed: JsonValue): string {
  return canonicalJson([purpose, signed]);
}
