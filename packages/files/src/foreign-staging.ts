import type { StagingAbilities } from "./disk/staging-abilities.ts";

/** An upload, as the stores of tus know it. */
export interface ForeignUpload {
  readonly id: string;
  readonly offset: number;
  readonly size?: number | undefined;
}

/**
 * A `DataStore` of `@tus/server` for S3, GCS, Azure or anything else, and what it can do beyond that interface. Met by
 * shape: no type of tus is named here.
 */
export interface ForeignStagingStore {
  hasExtension(extension: string): boolean;
  create(upload: ForeignUpload): Promise<unknown>;
  write(stream: AsyncIterable<Uint8Array>, id: string, offset: number): Promise<number>;
  getUpload(id: string): Promise<ForeignUpload>;
  declareUploadLength(id: string, sizeBytes: number): Promise<unknown>;
  remove(id: string): Promise<unknown>;
  deleteExpired(): Promise<unknown>;
  /** What is not said to be there is not used. */
  readonly abilities?: Partial<StagingAbilities>;
  /** All staged bytes: the stores of tus have it. Without it nothing can be committed. */
  read?(id: string, range?: { readonly start: number }): unknown;
  /** Cuts the staged bytes off; needed for `truncate`. */
  truncate?(id: string, sizeBytes: number): Promise<void>;
}
