/** What the state machine should do, in the fewest words: the reference that the engine is compared with. */
export interface ModelQuestion {
  readonly text: string;
  state: "open" | "answered" | "withdrawn" | "invalid";
  badAnswers: number;
}

export interface ModelTask {
  ended: "completed" | "failed" | undefined;
  message: string | undefined;
  cancelRequested: boolean;
  endsAtMs: number;
  readonly questions: Map<string, ModelQuestion>;
}

export interface Model {
  nowMs: number;
  readonly tasks: ModelTask[];
}

export const retentionMs = 60_000;
export const leaseMs = 10_000;

export function newModelTask(nowMs: number): ModelTask {
  const endsAtMs = nowMs + Math.max(retentionMs, 20 * leaseMs);
  return { ended: undefined, message: undefined, cancelRequested: false, endsAtMs, questions: new Map() };
}

export function isGone(model: Model, task: ModelTask): boolean {
  return model.nowMs >= task.endsAtMs;
}

/** True when nothing can change the task any more. */
export function isOver(model: Model, task: ModelTask): boolean {
  return task.ended !== undefined || isGone(model, task);
}

export function openKeys({ ended, questions }: ModelTask): string[] {
  if (ended !== undefined) return [];
  return [...questions].flatMap(([key, { state }]) => (state === "open" ? [key] : []));
}

export function statusOf(task: ModelTask): string {
  return task.ended ?? (openKeys(task).length > 0 ? "input_required" : "working");
}

export function endTask(model: Model, task: ModelTask, ended: "completed" | "failed"): void {
  task.ended = ended;
  task.endsAtMs = Math.max(task.endsAtMs, model.nowMs + retentionMs);
  task.message = ended === "failed" ? "broken" : undefined;
}

export function cancelModelTask(task: ModelTask): void {
  task.cancelRequested = true;
  for (const question of task.questions.values()) {
    if (question.state === "open") question.state = "withdrawn";
  }
}

/** The fourth bad answer is one too many. */
export function answerQuestion(question: ModelQuestion, good: boolean): void {
  if (question.state !== "open") return;
  if (good) question.state = "answered";
  else if ((question.badAnswers += 1) > 3) question.state = "invalid";
}
