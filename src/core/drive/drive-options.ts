import type { RunInput } from '../sessions/input-history.js'
import { optionError } from '../base/errors.js'
import { type BudgetsOption, checkBudgets } from '../budgets/shared-budget.js'
import {
  callbackRule,
  checkOptions,
  countRule,
  durationRule,
  type OptionRules,
  signalRule,
} from '../config/check-options.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import { findTagsFault, type SessionTags } from '../sessions/store/session-tags.js'
import { readSender, type SentBy } from '../sessions/principal.js'
import { checkAnswers, type SessionAnswer } from './drive-answers.js'

/** The options of `runSession`. */
export interface RunSessionOptions extends SentBy {
  /** The id of the session. */
  session: string
  /**
   * Starts the run, unless it has started. A function is called only if its value is needed, for long texts in engines.
   */
  input?: RunInput | (() => RunInput | Promise<RunInput>)
  /** Tags for the run that `input` starts. See `tags` of `agent.run`. */
  tags?: SessionTags
  /** Number of the run that `input` starts: 1, 2, … Defaults to the latest run, or to 1 if there is none. */
  turn?: number
  /**
   * Answers for the resting run, each with its call's `fingerprint` unless `at` is set. Ignored if the call no longer
   * waits.
   */
  answers?: readonly SessionAnswer[]
  /** The `head` of the result that `answers` refer to. The answers are ignored if the log has grown since then. */
  at?: number
  /** The name of the agent that starts the session. Defaults to the only agent, or to the session's last one. */
  agent?: string
  /** Stops this call at a point where another call can continue. Does not cancel the run. */
  signal?: AbortSignal
  /**
   * Called at once and every 10 seconds. If it throws or rejects, this call stops as if by `signal` and rejects with
   * the error.
   */
  heartbeat?: () => unknown
  /**
   * Longest retry delay to wait for, in milliseconds. For a longer one, the result is `stopped`. Unlimited by default.
   */
  maxRetryWaitMs?: number
  /** The app's context object, passed to `execute`. */
  context?: unknown
  /** Shared budgets in addition to the agent's budgets, as in `agent.run`. */
  budgets?: BudgetsOption
}

const optionRules: OptionRules<RunSessionOptions> = {
  session: null,
  input: null,
  by: null,
  tags: null,
  turn: countRule,
  answers: { is: Array.isArray, phrase: 'a list' },
  at: { is: Number.isSafeInteger, phrase: 'the head of an earlier result' },
  agent: { is: (value) => typeof value === 'string', phrase: "an agent's name" },
  signal: signalRule,
  heartbeat: callbackRule,
  maxRetryWaitMs: durationRule,
  context: null,
  budgets: null,
}

/** @throws {UsageError} `invalid_option`, naming the key; `invalid_input`, `unbound_answer` for answers */
export function checkDriveOptions(options: unknown): RunSessionOptions {
  const checked = checkOptions('runSession(agent, options)', options, optionRules)
  const { session, tags, answers, at, budgets } = checked
  checkSessionId(session)
  const tagsFault = tags === undefined ? null : findTagsFault(tags)
  if (tagsFault !== null) throw optionError(`runSession: tags ${tagsFault}.`, 'tags')
  readSender(checked, 'runSession')
  checkBudgets(budgets)
  if (answers) checkAnswers(answers, at)
  return checked
}
