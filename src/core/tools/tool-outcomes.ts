import type { Json } from '../../../machines/agent/json.js'
import type { BatchCall, ChildQuestion } from '../../../machines/agent/batch-calls.js'
import type { Elicitation } from '../../../machines/agent/run-result.js'
import { digest } from '../../../guards/lib/fingerprint.js'
import type { ToolExecution, Tool } from './tool.js'
import { UsageError } from '../base/errors.js'
import { readTime } from '../base/clock.js'
import type { SkillChange } from '../../../machines/agent/skills.js'

/**
 * A tool returns this object to ask people questions during its call. The run waits until all questions are answered,
 * possibly in another process. The tool is then called again with the same input, and `findAsked` returns the answers
 * and the memo.
 */
export class Ask {
  constructor(
    readonly elicitations: readonly Elicitation[],
    /** Stored in the log for the next call to the tool, but not shown to user interfaces or models. */
    readonly memo: Json,
  ) {}
}

export interface Asked {
  /** The answers in order, as JSON text. Undefined for a question without an answer. */
  readonly answers: readonly (string | undefined)[]
  readonly memo: Json
}

export function findAsked(execution: ToolExecution): Asked | undefined {
  return askedBefore.get(execution)
}

export function rememberAsked(
  execution: ToolExecution,
  { questions = [], memo = null }: Pick<BatchCall, 'questions' | 'memo'>,
): void {
  const answers = questions.map(({ answer }) => (answer?.type === 'output' ? answer.content : undefined))
  if (questions.length > 0) askedBefore.set(execution, { answers, memo })
}

const askedBefore = new WeakMap<ToolExecution, Asked>()

/** Creates the questions of a call. The fingerprint ensures that an answer applies only to its own question. */
export function toQuestions(
  { name, arguments: text }: Pick<BatchCall, 'name' | 'arguments'>,
  { elicitations, memo }: Ask,
): ChildQuestion[] {
  return elicitations.map((elicitation, i) => {
    const fingerprint = digest(JSON.stringify([name, text, elicitation, memo, i]))
    const callId = `ask-${fingerprint.slice(0, 8)}`
    const call = { callId, name: name as never, arguments: text, fingerprint }
    return { fromTool: true, ...call, needs: 'elicitation', elicitation }
  })
}

/** `sleepUntil` returns this to let a run sleep. */
export class Sleep {
  constructor(readonly at: number) {}

  /** Text for the model, which reads it after the sleep. */
  describe(now: number): string {
    const date = new Date(this.at).toISOString()
    return this.at > now
      ? `The run sleeps until ${date}. It continues then, unless a person or a message wakes it earlier.`
      : `${date} is in the past, so the run continues immediately.`
  }
}

/**
 * The earliest valid time, in milliseconds since the epoch. Smaller numbers must be durations passed by mistake,
 * because this number is a time in March 1973.
 */
const leastTime = 100_000_000_000

/**
 * Lets a run sleep if a tool's `execute` returns this value. When all calls in the batch have results, the run is
 * PAUSED with `sleeping` and uses no resources. `createWaker`, DBOS, Restate and `runSession` wake it at the given
 * time.
 * - If there are several dates, the latest applies. With a past date, the run continues immediately.
 * - `date` is a Date, or milliseconds since the epoch.
 *
 * @example
 * const waitForPayment = defineTool({
 *   name: 'wait_for_payment',
 *   description: 'Waits until the payment is due. Then check the account again.',
 *   input: z.object({ due: z.iso.datetime() }),
 *   polling: true,
 *   execute: ({ due }) => sleepUntil(new Date(due)),
 * })
 * @throws {UsageError} `invalid_date` for an invalid date, and for a number that looks like a duration
 */
export function sleepUntil(date: Date | number): Sleep {
  const at = readTime(date)
  if (at !== null && at >= leastTime) return new Sleep(Math.ceil(at))
  const what =
    at === null
      ? 'it must be a Date or a number of milliseconds since the epoch'
      : `${at} is a duration, or a date before 1973. To sleep for a duration, add the current time`
  throw new UsageError('invalid_date', `sleepUntil(date): ${what}.`, 'date')
}

/** A skill in the index of an agent. */
export interface SkillInfo {
  /** 1 to 64 lower-case letters, digits and hyphens. */
  readonly name: string
  /** Tells the model the purpose of the skill and when to load it. Up to 1,024 characters. */
  readonly description: string
  /** Tools that may be called while the skill is loaded. Absent if all tools may be called. */
  readonly allowedTools?: readonly string[]
  readonly license?: string
  readonly metadata?: Readonly<Record<string, string>>
  /** A hash that changes with the skill: 16 hexadecimal digits. */
  readonly hash: string
}

/** The skills of an agent, created by `skills()` from `statewright/skills`. */
export interface AgentSkills {
  /** Sorted by name. */
  readonly list: readonly SkillInfo[]
  /** The index of the skills for the instructions. */
  readonly instructions: string
  /** `load_skill`, `read_skill_file` and `unload_skill`. */
  readonly tools: readonly Tool[]
}

/** The result of a skill tool: text for the model, and the change. */
export class SkillOutcome {
  constructor(
    readonly text: string,
    readonly change: SkillChange,
  ) {}
}
