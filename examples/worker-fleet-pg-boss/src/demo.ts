/* The fleet on Postgres: pg-boss delivers, the store is `@longjobs/store-postgres`. Tables of its own, dropped at the end. */
import { tellFleetStory } from "@longjobs/example-worker-fleet/story";
import { Client } from "pg";

const url = process.env["DATABASE_URL"] ?? "postgres://postgres@127.0.0.1:5432/postgres";
const schema = `fleet_${process.pid}_${Date.now()}`;

await tellFleetStory({
  server: new URL("server.ts", import.meta.url),
  worker: new URL("worker.ts", import.meta.url),
  env: { DATABASE_URL: url, SCHEMA: schema },
});
const client = new Client({ connectionString: url });
await client.connect();
await client.query(`drop schema "${schema}" cascade; drop schema "${schema}_queue" cascade`);
await client.end();
