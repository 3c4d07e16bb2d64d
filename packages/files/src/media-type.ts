/** What clients may be told about a file by its name. Nothing here runs in a browser by itself. */
const mediaTypes: Readonly<Record<string, string>> = {
  csv: "text/csv",
  gz: "application/gzip",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  json: "application/json",
  md: "text/markdown",
  mp4: "video/mp4",
  parquet: "application/vnd.apache.parquet",
  pdf: "application/pdf",
  png: "image/png",
  txt: "text/plain",
  zip: "application/zip",
};

/** The media type of a file, by the ending of its name. */
export function mediaTypeOf(name: string): string {
  const ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  return (Object.hasOwn(mediaTypes, ending) ? mediaTypes[ending] : undefined) ?? "application/octet-stream";
}
