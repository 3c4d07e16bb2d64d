/** What happens when the target exists: an error, replacement, or a name with a number. */
export type PublishPolicy = "fail" | "replace" | "version";
