import type { Files } from "@longjobs/files";

/** Gives a page what it needs to upload. */
export async function grantUpload(files: Files, user: string): Promise<string> {
  // #region grant
  const endpoint = await files.createUploadUrl({
    scope: user,
    root: "inbox",
    directory: "from-pages",
    maxFileBytes: 100_000_000,
    validForMs: 10 * 60_000,
  });
  // #endregion
  return endpoint;
}

/** Counts the lines of a published file. */
export async function countLines(files: Files, path: string): Promise<number> {
  // #region open
  await using file = await files.openFile({ root: "inbox", path });
  let lines = 0;
  for await (const piece of file.stream()) {
    for (const byte of piece) if (byte === 10) lines += 1;
  }
  // #endregion
  return lines;
}
