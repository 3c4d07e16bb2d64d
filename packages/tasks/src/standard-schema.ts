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
  readonly path?: StandardPath | undefined;
  /** Of a zod union: what is wrong by each of its alternatives. */
  readonly errors?: readonly (readonly StandardIssue[])[];
}

type StandardPath = readonly (PropertyKey | { readonly key: PropertyKey })[];

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

/** Everything that is wrong, in one line; of a union what is wrong by the alternative that comes nearest. */
export function describeIssues(issues: readonly StandardIssue[]): string {
  return issues
    .flatMap(nearestIssues)
    .map(({ message, path }) => (path === undefined ? message : `${pathText(path)}: ${message}`))
    .join("; ");
}

function nearestIssues(issue: StandardIssue): readonly StandardIssue[] {
  const alternatives = (issue.errors ?? []).map((issues) => issues.flatMap(nearestIssues));
  const [nearest] = alternatives.toSorted((left, right) => left.length - right.length);
  if (nearest === undefined || nearest.length === 0) return [issue];
  return nearest.map(({ message, path = [] }) => ({ message, path: [...(issue.path ?? []), ...path] }));
}

function pathText(path: StandardPath): string {
  return path.map((step) => String(typeof step === "object" ? step.key : step)).join(".") || "(root)";
}
