import type { PublishPolicy } from "../disk/publish-policy.ts";

/** Who may create uploads by POST, and where they go. */
export interface UploadGrant {
  /** Whose transfers they are. */
  readonly scope?: string | undefined;
  /** Where the files go: a root that can be written. */
  readonly root: string;
  /** A directory in the root; files get the names that their clients give them, cleaned. @default the root itself */
  readonly directory?: string | undefined;
  /** What happens when the name is taken. @default "version" */
  readonly ifExists?: PublishPolicy | undefined;
  /** The largest file. @default what the server takes */
  readonly maxFileBytes?: number | undefined;
  /** How long the URL is good for, in milliseconds. @default an hour */
  readonly validForMs?: number | undefined;
}
