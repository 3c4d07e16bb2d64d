import type { AuthInfo } from "@longjobs/core";

import { toNodeListener, type FilesOptions } from "../../src/index.ts";
import { listen, openDoor, type Door, type Road } from "./doors.ts";
import { startFiles, type StartedFiles } from "./started-files.ts";

/** Files with an endpoint behind a real socket. */
export interface ServedFiles extends StartedFiles {
  readonly door: Door;
  readonly baseUrl: string;
  /** Each request that came, as `METHOD path`. */
  readonly requests: string[];
}

/** The address is known before the files are made, as it is in a configuration. */
export async function serveFiles(
  options: Partial<FilesOptions> & { readonly auth?: () => AuthInfo | undefined } = {},
  road?: Road,
): Promise<ServedFiles> {
  const { auth, ...rest } = options;
  let handler: ReturnType<typeof toNodeListener> | undefined;
  const requests: string[] = [];
  const url = await listen((request, response) => {
    requests.push(`${request.method ?? ""} ${request.url ?? ""}`);
    if (auth !== undefined) Object.assign(request, { auth: auth() });
    handler?.(request, response);
  });
  const baseUrl = new URL("files", url).href;
  const started = await startFiles({ ...rest, http: { baseUrl, ...rest.http } });
  handler = toNodeListener(started.files);
  return { ...started, baseUrl, requests, door: await openDoor(started.files, road) };
}

export const tus = { "tus-resumable": "1.0.0" };

/** One PATCH. */
export function patch(
  url: string,
  offset: number,
  body: Uint8Array | ReadableStream<Uint8Array>,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(url, {
    method: "PATCH",
    headers: {
      ...tus,
      "upload-offset": String(offset),
      "content-type": "application/offset+octet-stream",
      ...headers,
    },
    body,
    duplex: "half",
    ...(signal === undefined ? {} : { signal }),
  } as RequestInit);
}

/** Bytes as the body of a request. */
export function bodyOf(bytes: Uint8Array): BodyInit {
  return bytes as Uint8Array<ArrayBuffer>;
}
