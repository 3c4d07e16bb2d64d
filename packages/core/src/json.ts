/** A value that JSON text can hold. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object. Values handed out by longjobs are frozen. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}
