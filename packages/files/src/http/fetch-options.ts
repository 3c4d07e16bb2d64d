import type { AuthInfo } from "@longjobs/core";

/** What is known of a request besides what it says. */
export interface FetchOptions {
  /** Of an authenticated caller: then a URL counts only for the transfers of that caller. */
  readonly authInfo?: AuthInfo | undefined;
}
