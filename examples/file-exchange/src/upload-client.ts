/* Uploads a file to a URL with tus-js-client, and says how far it is. Started again after a kill, it goes on where it was. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Upload } from "tus-js-client";

const [path = "", uploadUrl = ""] = process.argv.slice(2);
// #region upload
const { size } = await stat(path);
let first: number | undefined;
await new Promise<void>((resolve, reject) => {
  const upload = new Upload(createReadStream(path), {
    uploadUrl,
    uploadSize: size,
    chunkSize: 8 * 1024 * 1024,
    retryDelays: [0, 1_000, 3_000],
    onChunkComplete: (chunk, sent) => {
      first ??= sent - chunk;
      process.send?.({ first, sent, size });
    },
    onError: reject,
    onSuccess: () => resolve(),
  });
  upload.start();
});
// #endregion
process.disconnect?.();
