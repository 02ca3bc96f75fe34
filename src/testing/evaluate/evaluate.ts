import { getOrCreate } from '../../core/base/values.js'
import { truncate } from '../../../guards/lib/words.js'
import type { AnyAgent } from '../../core/drive/define-agents.js'
import { whenAborted } from '../../core/base/abort.js'
import { type BudgetsOption, checkBudgets } from '../../core/budgets/shared-budget.js'
import { createId } from '../../core/base/platform.js'
import type { Clock } from '../../core/base/clock.js'
import { memoryStore } from '../../core/sessions/store/memory-store.js'
import { isSessionId } from '../../core/sessions/store/session-id.js'
import type { WithContext } from '../../core/tools/tool.js'
import { checkStore } from '../../core/sessions/store/checked-store.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import {
  callbackRule,
  checkOptions,
  countRule,
  integerRule,
  type OptionRules,
  signalRule,
} from '../../core/config/check-options.js'
import { type CaseOutcome, createCaseRunner } from './case-run.js'
import { checkCases, type EvaluationCase, EvaluationError } from './evaluation-case.js'
import {
  type EvaluatedCase,
  type EvaluatedRun,
  type EvaluationReport,
  reportVersion,
} from './evaluation-report.js'
import { getInternals } from '../rebind-agent.js'
import { checkScorers, type Scorer, scoreResult } from './score-run.js'
import { addCosts, scoreCase, summarizeCases } from './summarize-cases.js'

/** Options for `evaluate`. */
export interface EvaluateOptions<Expected = unknown, Context = unknown> {
  /** The agent to evaluate, which was created by `createAgent`. */
  agent: AnyAgent<Context>
  cases: readonly EvaluationCase<Expected>[]
  /** One scorer, or several by name. By default, the score is 1 for a completed run and 0 otherwise. */
  score?: Scorer<Expected> | Readonly<Record<string, Scorer<Expected>>>
  /**
   * Id of the evaluation, without dots. Sessions are named `ID.CASE.1` and tagged `evaluation=ID`. With a
   * `store`, the same id continues a stopped evaluation. Defaults to a new id.
   */
  id?: string
  /**
   * The store for the sessions, or null to store none. Defaults to the agent's store. Replayed sessions are not
   * stored by default.
   */
  store?: SessionStore | null
  /** Number of concurrent cases. Defaults to 4. */
  concurrency?: number
  /** Number of runs per case. Defaults to 1. */
  repeat?: number
  /** Minimum score to pass, if the scorer returns a number. Defaults to 0.5. */
  passAt?: number
  /** Seed for the bootstrap intervals. Defaults to 1. */
  seed?: number
  /** The app context passed to tools. Required if a tool requires one. */
  context?: unknown
  /**
   * Shared budgets in addition to the agent's. The budgets also pay for judges. A case that the budgets cannot pay for
   * is an error, not a zero.
   */
  budgets?: BudgetsOption
  /** Stops the evaluation. The report then contains the scored runs and is marked `interrupted`. */
  signal?: AbortSignal
  /** Called when a run starts and when it is scored. */
  onProgress?: (progress: EvaluationProgress) => void
}

export interface EvaluationProgress {
  /** Number of runs: cases times repeats. */
  total: number
  done: number
  running: number
  passed: number
  failed: number
  errors: number
  diverged: number
  /** The cost so far in USD, including judges. Null if a price is unknown. */
  cost: number | null
  elapsedMs: number
  /** The last scored run and its case. */
  last?: { case: string; run: EvaluatedRun }
}

const optionRules: OptionRules<EvaluateOptions> = {
  agent: null,
  cases: { is: Array.isArray, phrase: 'a list', isRequired: true },
  score: null,
  id: {
    is: (value) => isSessionId(value) && !value.includes('.') && value.length <= 80,
    phrase: 'a string of 1 to 80 letters, digits and _ : @ -, without a dot',
  },
  store: null,
  concurrency: countRule,
  repeat: countRule,
  passAt: {
    is: (value) => typeof value === 'number' && value >= 0 && value <= 1,
    phrase: 'a number from 0 to 1',
  },
  seed: integerRule,
  context: null,
  budgets: null,
  signal: signalRule,
  onProgress: callbackRule,
}

/**
 * Runs an agent on cases and scores the results.
 *
 * - Each case runs in its own session. Usage, time and guards are read from its log.
 * - If the model fails, or a scorer throws or returns no score, the case is an error, not a zero.
 *   Errors are excluded from means.
 * - With a store, a stopped evaluation continues under the same `id`. Finished sessions are scored again, not
 *   run again.
 *
 * @example
 * const cases = [{ id: 'a', input: 'Go.', expected: 'Done.' }]
 * const { summary } = await evaluate({ agent, cases, score: ({ output }, { expected }) => output === expected })
 * console.log(summary.passRate?.value, summary.verdicts.failed) // → 1 0
 *
 * @throws {EvaluationError} `invalid_cases`, `invalid_option`, `not_an_agent`, `other_evaluation`
 * @throws {ConfigError} `missing_api_key`, … for problems that affect all cases
 */
export async function evaluate<Expected, Context = unknown>(
  options: WithContext<EvaluateOptions<Expected, Context>, NoInfer<Context>>,
): Promise<EvaluationReport> {
  const checked = checkOptions(
    'evaluate(options)',
    options as unknown as EvaluateOptions,
    optionRules,
    (message, key) => new EvaluationError('invalid_option', message, key),
  )
  const { concurrency = 4, repeat = 1, passAt = 0.5, seed = 1 } = checked
  const { agent, store: given, context, budgets, signal: stopSignal, onProgress } = checked
  checkStore(given ?? undefined)
  checkBudgets(budgets)
  const { parts, store: own } = getInternals(agent)
  const { clock, model } = parts
  const cases = checkCases(checked.cases)
  const scorers = checkScorers(checked.score)
  const id = checked.id ?? createEvaluationId(clock)
  const isReplay = cases.some(({ recorded }) => recorded !== undefined)
  const chosen = given === undefined && !isReplay ? own : given
  const isKept = chosen !== undefined && chosen !== null
  const store = chosen ?? memoryStore()
  const startedAt = clock.now()
  const stop = new AbortController()
  const { signal } = stop
  const runner = createCaseRunner({ id, parts, store, context, budgets, signal })
  const runs = new Map<string, (EvaluatedRun | undefined)[]>()
  const total = cases.length * repeat
  const tally: Tally = { done: 0, running: 0, passed: 0, failed: 0, errors: 0, diverged: 0, cost: 0 }
  let fatal: { error: unknown } | undefined

  function reportProgress(last?: EvaluationProgress['last']): void {
    onProgress?.({ ...tally, total, elapsedMs: clock.now() - startedAt, ...(last && { last }) })
  }

  async function score(one: EvaluationCase, outcome: CaseOutcome): Promise<EvaluatedRun | null> {
    const { session, result, error, diverged } = outcome
    const isScored = result !== null && !error && !diverged
    const scored = isScored
      ? await scoreResult(scorers, result, one, { passAt, session, store, budgets, signal })
      : null
    if (signal.aborted) return null
    const problem = error ?? scored?.error
    return {
      session: isKept ? session : null,
      verdict: diverged ? 'diverged' : problem ? 'error' : scored?.passed ? 'passed' : 'failed',
      score: scored?.score ?? null,
      scores: scored?.scores ?? {},
      ...(problem && { error: problem }),
      ...(diverged && { diverged }),
      ...toFacts(outcome),
      cost: { agent: outcome.usage.cost, judges: scored?.judgesCost ?? 0 },
    }
  }

  async function runAndScore(one: EvaluationCase, turn: number): Promise<EvaluatedRun | null> {
    const outcome = await runner.run(one, turn)
    if (outcome === null) return null
    const run = await score(one, outcome)
    if (!isKept) await runner.forget(outcome)
    return run
  }

  async function runCase(one: EvaluationCase, turn: number): Promise<void> {
    tally.running += 1
    reportProgress()
    const run = await runAndScore(one, turn).finally(() => (tally.running -= 1))
    if (run === null) return
    getOrCreate(runs, one.id, () => [])[turn - 1] = run
    tally.done += 1
    tally[run.verdict === 'error' ? 'errors' : run.verdict] += 1
    tally.cost = addCosts(addCosts(tally.cost, run.cost.agent), run.cost.judges)
    reportProgress({ case: one.id, run })
  }

  /** Runs every case once before repeating any, so that a stopped evaluation covers as many cases as possible. */
  function* listTasks(): Generator<[one: EvaluationCase, turn: number]> {
    for (let turn = 1; turn <= repeat; turn++) for (const one of cases) yield [one, turn]
  }

  const tasks = listTasks()
  async function work(): Promise<void> {
    for (let next = tasks.next(); !next.done; next = tasks.next()) {
      if (signal.aborted) return
      try {
        // oxlint-disable-next-line no-await-in-loop -- each worker has one case at a time
        await runCase(...next.value)
      } catch (error) {
        fatal ??= { error }
        stop.abort()
      }
    }
  }

  const unfollow = stopSignal ? whenAborted(stopSignal, () => stop.abort()) : () => undefined
  try {
    await Promise.all(Array.from({ length: concurrency }, work))
  } finally {
    unfollow()
  }
  if (fatal) throw fatal.error
  const evaluated = cases.flatMap((one): EvaluatedCase[] => {
    const done = runs.get(one.id)?.filter((run) => run !== undefined) ?? []
    return done.length === 0 ? [] : [toEvaluatedCase(one, done)]
  })
  return {
    statewright: 'evaluation',
    version: reportVersion,
    id,
    startedAt,
    endedAt: clock.now(),
    ...(tally.done !== total && { interrupted: true as const }),
    agent: { model: `${model.provider} ${model.model}`, definition: runner.definition },
    scorers: Object.keys(scorers),
    passAt,
    repeat,
    seed,
    cases: evaluated,
    summary: summarizeCases(evaluated, Object.keys(scorers), seed),
  }
}

type Tally = Omit<EvaluationProgress, 'total' | 'elapsedMs' | 'last'>

function toFacts({ result, usage, steps, durationMs, guards }: CaseOutcome) {
  return {
    state: result?.state ?? null,
    reason: result?.reason ?? null,
    ...(result?.error && { failure: result.error }),
    output: truncate(result?.output ?? '', 4000),
    steps,
    tokens: { input: usage.inputTokens, output: usage.outputTokens, total: usage.totalTokens },
    durationMs,
    guards,
  }
}

function toEvaluatedCase({ id, tags, input, expected }: EvaluationCase, runs: EvaluatedRun[]): EvaluatedCase {
  return {
    id,
    ...(tags && { tags }),
    input: truncate(describeInput(input), 2000),
    ...(expected !== undefined && { expected: truncate(toText(expected), 2000) }),
    ...scoreCase(runs),
    runs,
  }
}

function describeInput(input: EvaluationCase['input']): string {
  if (typeof input === 'string') return input
  const last = input.at(-1)
  const content = last !== undefined && 'content' in last ? last.content : input
  return toText(content)
}

const toText = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))

/** Creates an id that can be sorted by time. */
function createEvaluationId(clock: Clock): string {
  const time = new Date(clock.now()).toISOString().replaceAll(/[-:]|\.\d+Z/g, '')
  return `eval-${time}-${createId().slice(0, 4)}`
}
