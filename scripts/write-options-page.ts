/*
 * Writes docs/reference/options.md from the docstrings of the option interfaces, which own the truth. With
 * --check nothing is written, and a difference fails.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const page = join(root, "docs/reference/options.md");

const interfaces = [
  {
    title: "createTasks(options)",
    source: "tasks/src/create-tasks.ts",
    name: "TasksOptions",
    also: "every option of `TaskLifecycle` but the two validators",
  },
  {
    title: "tasks.taskTool(name, config, handler)",
    source: "tasks/src/tool-config.ts",
    name: "TaskToolConfig",
  },
  {
    title: "createTasks({ fallbackTools })",
    source: "tasks/src/fallback-options.ts",
    name: "FallbackOptions",
  },
  { title: "createTasks({ push })", source: "tasks/src/push/push-options.ts", name: "PushOptions" },
  {
    title: "new TaskLifecycle(options)",
    source: "core/src/lifecycle-options.ts",
    name: "TaskLifecycleOptions",
  },
  { title: "lifecycle.createTask(options)", source: "core/src/draft-task.ts", name: "CreateTaskOptions" },
  {
    title: "new MemoryTaskStore(options)",
    source: "core/src/memory-task-store.ts",
    name: "MemoryTaskStoreOptions",
  },
  { title: "WalTaskStore.open(options)", source: "store-wal/src/options.ts", name: "WalTaskStoreOptions" },
  { title: "createFiles(options)", source: "files/src/options.ts", name: "FilesOptions" },
  { title: "createFiles({ http })", source: "files/src/options.ts", name: "FilesHttpOptions" },
  { title: "createFiles({ limits })", source: "files/src/options.ts", name: "FilesLimits" },
  { title: "createFiles({ staging })", source: "files/src/options.ts", name: "LocalStagingOptions" },
  { title: "createFiles({ roots })", source: "files/src/disk/root-options.ts", name: "RootOptions" },
  { title: "files.createUploadUrl(grant)", source: "files/src/http/upload-grant.ts", name: "UploadGrant" },
  {
    title: "new PostgresTaskStore(options)",
    source: "store-postgres/src/options.ts",
    name: "PostgresTaskStoreOptions",
  },
  {
    title: "new RedisTaskStore(options)",
    source: "store-redis/src/options.ts",
    name: "RedisTaskStoreOptions",
  },
  {
    title: "checkTaskStore(name, factory, options)",
    source: "conformance/src/suite-options.ts",
    name: "SuiteOptions",
  },
];

/** The whole page. */
export function renderOptionsPage(): string {
  const sections = interfaces.map(({ title, source, name, also }) => {
    const rows = readMembers(source, name).map(
      ({ member, text, fallback }) => `| \`${member}\` | ${text} | ${fallback} |`,
    );
    const more = also === undefined ? "" : `\nAnd ${also}.\n`;
    return `## \`${title}\`\n${more}\n| option | meaning | default |\n|---|---|---|\n${rows.join("\n")}\n`;
  });
  return `# Options\n\nGenerated from the docstrings. All options are checked when the object is made, never on first use.\n\n${sections.join("\n")}`;
}

function readMembers(source: string, name: string): { member: string; text: string; fallback: string }[] {
  const code = readFileSync(join(root, "packages", source), "utf8");
  const body = new RegExp(`export interface ${name}\\b[^]*?\\{\\n([^]*?)\\n\\}`).exec(code)?.[1];
  if (body === undefined) throw new Error(`packages/${source} has no interface ${name}.`);
  const members = [];
  for (const [, comment = "", member = ""] of body.matchAll(/\/\*\*([^]*?)\*\/\s*readonly (\w+)/g)) {
    const words = comment
      .replaceAll(/^\s*\*? ?/gm, "")
      .replaceAll(/\s+/g, " ")
      .trim();
    const [text = "", fallback = "–"] = words.split(" @default ");
    members.push({ member, text: escape(text), fallback: escape(fallback) });
  }
  return members;
}

function escape(text: string): string {
  return text.trim().replaceAll("|", "\\|");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = renderOptionsPage();
  if (!process.argv.includes("--check")) writeFileSync(page, text);
  else if (readFileSync(page, "utf8") !== text) {
    console.log("docs/reference/options.md differs from the docstrings: run pnpm docs:sync");
    process.exitCode = 1;
  }
}
