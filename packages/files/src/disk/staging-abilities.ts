/** What a staging store can do beyond the interface of `@tus/server`; one that says nothing can do none of it. */
export interface StagingAbilities {
  /** A write of a few bytes at any offset is stored as it is. S3, for one, wants parts of 5 MiB. */
  readonly smallWrites: boolean;
  /** Staged bytes can be read from any position. */
  readonly rangedRead: boolean;
  /** Staged bytes can be cut off, as the checksum extension of TUS needs. */
  readonly truncate: boolean;
}
