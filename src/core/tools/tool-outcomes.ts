import type { Json } from '../../../machines/agent/json.js'
import type { BatchCall, ChildQuestion } from '../../../machines/agent/batch-calls.js'
import type { Elicitation } from '../../../machines/agent/run-result.js'
import { digest } from '../../../guards/lib/fingerprint.js'
import type { ToolExecution, Tool } from './tool.js'
import { UsageError } from '../base/errors.js'
import { readTime } from '../base/clock.js'
import type { SkillChange } from '../../../machines/agent/skills.js'

/**
 * What a tool returns to ask people in the middle of its call. The run rests until all is answered, perhaps in another process;
 * then the tool is called again with the same input, and `findAsked` has the answers and the memo.
 */
export class Ask {
  readonly elicitations: readonly Elicitation[]
  /** What the tool wants to have when it is called again. It is in the log, and no page or model sees it. */
  readonly memo: Json

  constructor(elicitations: readonly Elicitation[], memo: Json) {
    this.elicitations = elicitations
    this.memo = memo
  }
}

/** What a call has asked, and what it was answered. */
export interface Asked {
  /** The answer to each elicitation, in their order, as JSON text; undefined where there is none. */
  readonly answers: readonly (string | undefined)[]
  readonly memo: Json
}

/** What a call has asked before; undefined: nothing. */
export function findAsked(execution: ToolExecution): Asked | undefined {
  return askedBefore.get(execution)
}

export function rememberAsked(execution: ToolExecution, { questions = [], memo = null }: AskingCall): void {
  const answers = questions.map(({ answer }) => (answer?.type === 'output' ? answer.content : undefined))
  if (questions.length > 0) askedBefore.set(execution, { answers, memo })
}

/** The part of a call that questions are about. */
type AskingCall = Pick<BatchCall, 'questions' | 'memo'>

const askedBefore = new WeakMap<ToolExecution, Asked>()

/** The questions of a call. An answer to one of them is for no other one, whatever the server asks next. */
export function toQuestions(
  { name, arguments: text }: Pick<BatchCall, 'name' | 'arguments'>,
  { elicitations, memo }: Ask,
): ChildQuestion[] {
  return elicitations.map((elicitation, i) => {
    const fingerprint = digest(JSON.stringify([name, text, elicitation, memo, i]))
    const callId = `ask-${fingerprint.slice(0, 8)}`
    return {
      own: true,
      callId,
      name: name as never,
      arguments: text,
      fingerprint,
      needs: 'elicitation',
      elicitation,
    }
  })
}

/** What a tool returns to let its run sleep: made by `sleepUntil`. */
export class Sleep {
  /** Milliseconds since the epoch. */
  readonly at: number

  constructor(at: number) {
    this.at = at
  }

  /** In words for the model: it reads them when the run goes on. */
  describe(now: number): string {
    const date = new Date(this.at).toISOString()
    return this.at > now
      ? `The run sleeps until ${date}. It goes on at that time, unless a person or a message wakes it before.`
      : `${date} is over: the run goes on at once.`
  }
}

/** Earlier than this, a number is a duration that was meant as a time: it is a day of March 1973. */
const leastTime = 100_000_000_000

/**
 * Lets the run of a tool sleep: return it from `execute`. When all calls of the batch have their results, the run rests in
 * PAUSED, `sleeping`, and costs nothing. `createWaker`, DBOS, Restate and `runSession` wake it at that time.
 *
 * - Of several dates, the latest counts. A date that is over lets the run go on at once.
 * - `date`: a Date, or milliseconds since the epoch.
 *
 * @example
 * const waitForPayment = defineTool({
 *   name: 'wait_for_payment',
 *   description: 'Waits until the payment is due. Then check the account again.',
 *   input: z.object({ due: z.iso.datetime() }),
 *   polling: true,
 *   execute: ({ due }) => sleepUntil(new Date(due)),
 * })
 * @throws {UsageError} `invalid_date` for what is no date, and for a number that is a duration
 */
export function sleepUntil(date: Date | number): Sleep {
  const at = readTime(date)
  if (at === null) throw dateError('it must be a Date, or a number of milliseconds since the epoch')
  if (at < leastTime)
    throw dateError(
      `${at} is a duration, or a date before 1973: to sleep for that long, add the present time to it`,
    )
  return new Sleep(Math.ceil(at))
}

function dateError(what: string): UsageError {
  return new UsageError('invalid_date', `sleepUntil(date): ${what}.`, 'date')
}

/** A skill of an agent, as its index has it. */
export interface SkillInfo {
  /** 1 to 64 small letters, digits and hyphens. */
  readonly name: string
  /** What it is for and when to load it, for the model: up to 1,024 characters. */
  readonly description: string
  /** Only these tools may be called while it is loaded. Absent: it narrows nothing. */
  readonly allowedTools?: readonly string[]
  readonly license?: string
  readonly metadata?: Readonly<Record<string, string>>
  /** Changes with the skill: 16 hexadecimal digits. */
  readonly hash: string
}

/**
 * The skills of an agent: what `skills()` of `statewright/skills` returns.
 *
 * @example
 * const reviewing: AgentSkills = skills({
 *   list: [{ name: 'review', description: 'How to review a change.' }],
 *   load: () => 'Read the whole change before you say anything.',
 * })
 * createAgent({ model, skills: reviewing })
 */
export interface AgentSkills {
  /** All of them, sorted by name. */
  readonly list: readonly SkillInfo[]
  /** The index that goes into the instructions. */
  readonly instructions: string
  /** `load_skill`, `read_skill_file` and `unload_skill`. */
  readonly tools: readonly Tool[]
}

/** What a tool of skills returns: what the model reads, and what changes. */
export class SkillOutcome {
  readonly text: string
  readonly change: SkillChange

  constructor(text: string, change: SkillChange) {
    this.text = text
    this.change = change
  }
}
