import { LongJobsError } from "./longjobs-error.ts";
import type { InputRequest, TaskClient } from "./task-record.ts";

/**
 * Refuses a question whose kind the client of this very call did not declare. A task without a known client
 * may ask anything.
 *
 * @throws `input_not_supported` with the missing capability in `param`.
 */
export function assertInputSupported(request: InputRequest, client: TaskClient | undefined): void {
  const capabilities = client?.capabilities;
  if (capabilities === undefined) return;
  const needed = neededCapability(request);
  if (needed === undefined) {
    throw new LongJobsError(
      "input_not_supported",
      `${request.method} is not a question a client can be asked.`,
      {
        param: request.method,
      },
    );
  }
  const [name, mode] = needed;
  const declared = Object.hasOwn(capabilities, name) ? capabilities[name] : undefined;
  if (isDeclared(declared, mode)) return;
  const missing = mode === undefined ? name : `${name}.${mode}`;
  throw new LongJobsError(
    "input_not_supported",
    `The client did not declare the capability ${missing}, so ${request.method} cannot be asked.`,
    {
      param: missing,
      recoveryHint: "Pass what is needed as an argument, or use a client that can be asked.",
    },
  );
}

function neededCapability(request: InputRequest): readonly [name: string, mode?: string] | undefined {
  switch (request.method) {
    case "elicitation/create":
      return ["elicitation", request.params?.["mode"] === "url" ? "url" : "form"];
    case "sampling/createMessage":
      return ["sampling"];
    case "roots/list":
      return ["roots"];
    default:
      return undefined;
  }
}

/** An empty elicitation capability means forms: that is what it meant before modes existed. */
function isDeclared(declared: unknown, mode: string | undefined): boolean {
  if (typeof declared !== "object" || declared === null) return false;
  if (mode === undefined || Object.hasOwn(declared, mode)) return true;
  return mode === "form" && !Object.hasOwn(declared, "url");
}
