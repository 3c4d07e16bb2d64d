import * as fc from "fast-check";

/** Names that exist in the playground of the fuzz test. */
const known =
  "a b one.txt two.txt top.txt real link link.txt loop dangling pipe secret.txt target root-secret root private three.txt id.key new.txt new";

/** Names that hostile clients send, as far as they have no blank in them. */
const hostile =
  ".. . ... ..a ~ * %2e%2e %2f ..%2f ..; C: CON nul.txt proc self etc passwd dev fd 0 A TOP.TXT ID.KEY PRIVATE .longjobs-0123456789abcdef0123456789abcdef.part";

const rare = [
  "",
  " ",
  "a\0",
  "\0",
  "a\nb",
  "..\\",
  "\\\\host\\share",
  "\u202E",
  "\uFEFF",
  "e\u0301",
  "\u212A",
  "\uD800",
  "id.k\u200Dey",
  "x".repeat(255),
  "x".repeat(256),
  "ä".repeat(128),
];

const name = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...known.split(" ")) },
  { weight: 2, arbitrary: fc.constantFrom(...hostile.split(" ")) },
  { weight: 1, arbitrary: fc.constantFrom(...rare) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 20 }) },
);

const joined = fc
  .tuple(
    fc.constantFrom("", "", "", "", "/", "./", "../", "//", "\\", "file:///", "/proc/self/cwd/"),
    fc.array(name, { minLength: 1, maxLength: 5 }),
    fc.constantFrom("/", "/", "/", "/", "/", "//", "\\", "/./", "/../"),
    fc.constantFrom("", "", "", "", "", "/", "/.", "/..", "\0", ".", " ", ":stream"),
  )
  .map(([start, names, separator, end]) => start + names.join(separator) + end);

/** Paths that are fine, so that the rest is tried on a root in use. */
const fine = fc.constantFrom(
  "top.txt",
  "a/one.txt",
  "a/b/two.txt",
  "real/new.txt",
  "new/er/file.bin",
  "other.bin",
);

/** Paths in ways that systems tell apart and ways that they do not. */
export const waysToSpell: fc.Arbitrary<string> = fc.oneof(
  { weight: 5, arbitrary: joined },
  { weight: 1, arbitrary: fine },
);
