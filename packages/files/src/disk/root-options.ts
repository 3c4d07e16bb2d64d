/** One directory that clients may name. */
export interface RootOptions {
  /** Absolute. */
  readonly path: string;
  /** Whether clients may download from it. @default true */
  readonly read?: boolean;
  /** Whether clients may publish into it. @default false */
  readonly write?: boolean;
  /**
   * Paths that are refused, whatever the case of their letters: `*` and `?` within a name, `**` for any number of
   * names. A pattern without a slash is compared with each name of a path, others with the path from the root on; what
   * lies under a refused directory is refused.
   */
  readonly deny?: readonly string[];
  /** The mode of published files; a directory made for them is open to the same people. @default 0o600 */
  readonly fileMode?: number;
}
