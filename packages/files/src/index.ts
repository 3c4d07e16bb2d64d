// Everything listed here is public API.
export { createFiles, withFileTransfer } from "./create-files.ts";
export type { PublishPolicy } from "./disk/publish-policy.ts";
export type { RootOptions } from "./disk/root-options.ts";
export type { StagingAbilities } from "./disk/staging-abilities.ts";
export type { Files, OpenedFile, SweptTransfers } from "./files.ts";
export type { ForeignStagingStore, ForeignUpload } from "./foreign-staging.ts";
export type { FetchOptions } from "./http/fetch-options.ts";
export { toNodeListener } from "./http/node-listener.ts";
export type { NodeRequestLike, NodeResponseLike, WebEndpoint } from "./http/node-listener.ts";
export type { UploadGrant } from "./http/upload-grant.ts";
export type { McpServerLike } from "./mcp-server.ts";
export type { FilesHttpOptions, FilesLimits, FilesOptions, LocalStagingOptions } from "./options.ts";
