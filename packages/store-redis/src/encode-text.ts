/**
 * A text of the caller's as it is written in a key, in an index or as the name of a field: itself, or a JSON
 * string where UTF-8 would lose a lone surrogate or where it could be taken for something of ours. No two
 * texts are written alike, because only JSON strings begin with a quote.
 */
export function encodeText(text: string): string {
  return text.isWellFormed() && !ambiguous.test(text) ? text : JSON.stringify(text);
}

/** The text that {@link encodeText} wrote. */
export function decodeText(written: string): string {
  return written.startsWith('"') ? (JSON.parse(written) as string) : written;
}

/** Empty, written as JSON, or like the fields that the store keeps for itself. */
const ambiguous = /^(?:$|["@])/;
