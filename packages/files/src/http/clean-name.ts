/** Well below what file systems take, so that a number and a temporary name fit beside it. */
const maxNameBytes = 200;

/** What a client calls a file, as a name that is safe on every system: a label, never a path. */
export function cleanName(label: string | null | undefined): string {
  const last = (label ?? "").split(/[/\\]/).at(-1) ?? "";
  const plain = last
    .normalize("NFC")
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}<>:"|?*~]/gu, "_")
    .replace(/^[.\s]+/, "")
    .replace(/[.\s]+$/, "");
  const name = cutTo(plain, maxNameBytes);
  return name === "" || isReserved(name) ? `file-${name}`.replace(/-$/, "") : name;
}

/** Cut in the middle of no character; the ending stays. */
function cutTo(name: string, maxBytes: number): string {
  if (Buffer.byteLength(name) <= maxBytes) return name;
  const ending = /\.[A-Za-z0-9]{1,10}$/.exec(name)?.[0] ?? "";
  let kept = "";
  for (const character of name) {
    if (Buffer.byteLength(kept + character + ending) > maxBytes) break;
    kept += character;
  }
  return kept + ending;
}

/** What Windows takes for a device. */
function isReserved(name: string): boolean {
  return /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i.test(name);
}
