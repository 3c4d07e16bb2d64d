/**
 * The parts of the Standard Schema interface that are used here: zod, valibot, arktype and others have it.
 */
export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** What validation gives. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One thing that is wrong, and where. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A schema, or an object of schemas by property, as the SDK takes them. */
export type ToolSchema = StandardSchema | { readonly [property: string]: StandardSchema };

/** The value that a schema gives. */
export type SchemaOutput<Schema> =
  Schema extends StandardSchema<infer Output>
    ? Output
    : Schema extends { readonly [property: string]: StandardSchema }
      ? {
          -readonly [Property in keyof Schema]: Schema[Property] extends StandardSchema<infer Output>
            ? Output
            : never;
        }
      : Record<string, never>;

/** Everything that is wrong, in one line. */
export function describeIssues(issues: readonly StandardIssue[]): string {
  return issues
    .map(({ message, path }) => (path === undefined ? message : `${pathText(path)}: ${message}`))
    .join("; ");
}

function pathText(path: NonNullable<StandardIssue["path"]>): string {
  return path.map((step) => String(typeof step === "object" ? step.key : step)).join(".") || "(root)";
}
