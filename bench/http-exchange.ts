import { request, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";

/** An answer, of whose body only the length and the beginning are kept. */
export interface Exchange {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: number;
  readonly text: string;
}

/** One request and its answer, with as little work as possible in between. */
export function exchange(
  method: string,
  url: string,
  headers: OutgoingHttpHeaders = {},
  body?: Iterable<Buffer>,
): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method, headers, agent: false }, (response) => {
      let bytes = 0;
      let text = "";
      response.on("data", (part: Buffer) => {
        if (bytes < 1_000) text += part.toString("latin1", 0, 1_000);
        bytes += part.length;
      });
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text }),
      );
    });
    call.on("error", reject);
    if (body === undefined) call.end();
    else Readable.from(body, { highWaterMark: 1 }).pipe(call);
  });
}
