import type { TestProject } from "vitest/node";
import { answers, findBinaries, OwnServer } from "./own-server.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Where the tests find a server; `undefined` when there is none and none can be started. */
    readonly postgresUrl: string | undefined;
  }
}

const defaultUrl = "postgres://postgres@127.0.0.1:5432/postgres";

let started: OwnServer | undefined;

/** Finds a server for the tests, or starts one. */
export async function setup(project: TestProject): Promise<void> {
  const wanted = process.env["LONGJOBS_POSTGRES_URL"];
  // A wanted server that is not there is no reason to use another: the tests fail, and say where they looked.
  if (wanted !== undefined || (await answers(defaultUrl))) {
    project.provide("postgresUrl", wanted ?? defaultUrl);
  } else if (findBinaries() === undefined) {
    console.log(
      "store-postgres: skipped. No server at 127.0.0.1:5432, no LONGJOBS_POSTGRES_URL, and no postgres to start.",
    );
    project.provide("postgresUrl", undefined);
  } else {
    started = await OwnServer.start();
    project.provide("postgresUrl", started.url);
  }
}

/** Ends what {@link setup} started. */
export async function teardown(): Promise<void> {
  await started?.remove();
}
