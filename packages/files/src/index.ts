// Everything listed here is public API.
export { createFiles, withFileTransfer } from "./create-files.ts";
export type { Files } from "./create-files.ts";
export type { PublishPolicy } from "./disk/publish.ts";
export type { RootOptions } from "./disk/root.ts";
export { StagingStore } from "./disk/staging-store.ts";
export type { StagingAbilities, StagingStoreOptions } from "./disk/staging-store.ts";
export type { FetchOptions } from "./http/files-endpoint.ts";
export { toNodeListener } from "./http/node-listener.ts";
export type { WebEndpoint } from "./http/node-listener.ts";
export type { UploadGrant } from "./http/transfer-urls.ts";
export type { FilesHttpOptions, FilesLimits, FilesOptions } from "./options.ts";
export type { McpServerLike } from "./sdk-server.ts";
export type { ForeignStagingStore } from "./staging.ts";
export type { SweptTransfers } from "./sweep-transfers.ts";
