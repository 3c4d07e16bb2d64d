import { transferErrors } from "./transfer-errors.ts";

const alphabet = /^[A-Za-z0-9+/]*={0,2}$/;

/** How many bytes a base64 text of this length has at most. */
export function decodedBytes(text: string): number {
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="));
  return Math.floor((text.length * 3) / 4) - padding;
}

/**
 * The bytes of a base64 text, which must be the one text for these bytes: what Node skips or forgives (white space,
 * other alphabets, missing padding, loose bits) could stand for bytes that the client did not mean.
 *
 * @throws `invalid_base64`
 */
export function decodeBase64(text: string): Buffer {
  if (text.length % 4 !== 0 || !alphabet.test(text)) throw transferErrors.invalidBase64();
  const bytes = Buffer.from(text, "base64");
  // Bits behind the last byte are not seen by the pattern.
  const tail = text.slice(-4);
  if (tail.endsWith("=") && bytes.subarray(bytes.length - (bytes.length % 3)).toString("base64") !== tail)
    throw transferErrors.invalidBase64();
  return bytes;
}
