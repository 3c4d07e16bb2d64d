/**
 * The form in which names are compared with patterns. A file system may take two spellings for one name (case,
 * composition, characters that do not show); every such pair has one form here, so that no spelling gets around a
 * pattern. On other file systems a few more names are refused than had to be.
 */
export function foldName(name: string): string {
  return name
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "")
    .normalize("NFD")
    .toUpperCase()
    .toLowerCase()
    .normalize("NFC");
}

/** Makes the test for a list of patterns; it takes the names of a path from the root on. */
export function compileDenyPatterns(patterns: readonly string[]): (names: readonly string[]) => boolean {
  const compiled = patterns.map(compile);
  return (names) => {
    const folded = names.map(foldName);
    // Each parent too: what lies under a refused directory is refused.
    return folded.some((name, index) => {
      const path = folded.slice(0, index + 1).join("/");
      return compiled.some(({ pattern, isName }) => pattern.test(isName ? name : path));
    });
  };
}

function compile(pattern: string): { pattern: RegExp; isName: boolean } {
  const names = pattern.split("/");
  if (typeof pattern !== "string" || names.includes("") || names.includes("..") || names.includes(".")) {
    throw new TypeError(
      `The deny pattern ${JSON.stringify(pattern)} is no relative path: leave out leading, trailing and double slashes, "." and "..".`,
    );
  }
  const source = names.map((name, index) => {
    const isLast = index === names.length - 1;
    if (name === "**") return isLast ? ".+" : "(?:[^/]+/)*";
    return compileName(name) + (isLast ? "" : "/");
  });
  return { pattern: new RegExp(`^${source.join("")}$`, "u"), isName: names.length === 1 };
}

function compileName(name: string): string {
  return foldName(name)
    .replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll(/\*+/g, "[^/]*")
    .replaceAll("?", "[^/]");
}
