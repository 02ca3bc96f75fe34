import { getOrCreate } from '../../core/base/values.js'
import { truncate } from '../../../guards/lib/words.js'
import type { AnyAgent } from '../../core/drive/define-agents.js'
import { whenAborted } from '../../core/base/abort.js'
import { type BudgetsOption, checkBudgets } from '../../core/budgets/shared-budget.js'
import { createId } from '../../core/base/platform.js'
import type { Clock } from '../../core/base/clock.js'
import { memoryStore } from '../../core/sessions/store/memory-store.js'
import { isSessionId } from '../../core/sessions/store/session-id.js'
import type { WithContext, Tool, ToolExecution } from '../../core/tools/tool.js'
import { checkStore } from '../../core/sessions/store/checked-store.js'
import type { SessionStore, LogRecord } from '../../core/sessions/store/store.js'
import {
  callbackRule,
  checkOptions,
  countRule,
  integerRule,
  type OptionRules,
  signalRule,
} from '../../core/config/check-options.js'
import {
  checkCases,
  type EvaluationCase,
  EvaluationError,
  evaluationTag,
  type RecordedResult,
  type RecordedSession,
} from './evaluation-case.js'
import {
  type EvaluatedCase,
  type EvaluatedRun,
  type EvaluationReport,
  reportVersion,
  type GuardSaid,
  addCosts,
  scoreCase,
  summarizeCases,
} from './evaluation-report.js'
import { getInternals, rebindAgent, wrapTools } from '../rebind-agent.js'
import { checkScorers, type Scorer, scoreResult, settleRun } from './score-run.js'
import type { ToolSet } from '../../core/tools/tool-set.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { addUsage, noUsage, type Usage } from '../../../machines/agent/usage.js'
import { createDefinitionFactory } from '../../core/agent/agent-internals.js'
import { describeError, ConfigError, StatewrightError } from '../../core/base/errors.js'
import type { AgentParts } from '../../core/live/agent-parts.js'
import type { SessionTags } from '../../core/sessions/store/session-tags.js'
import { readSessionAt } from '../../core/sessions/replay-session.js'
import { replayEvents } from '../../core/run/watch-session.js'
import { openRecord } from '../../core/sessions/log/log-record.js'
import { parseArguments } from '../../core/tools/parse-arguments.js'
import { needsPerson } from '../../core/tools/prepare-calls.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { ToolContent } from '../../core/tools/tool-content.js'
import { toCanonicalJson } from '../canonical-json.js'

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
    const { session, result, usage, error, diverged, steps, durationMs, guards } = outcome
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
      state: result?.state ?? null,
      reason: result?.reason ?? null,
      ...(result?.error && { failure: result.error }),
      output: truncate(result?.output ?? '', 4000),
      steps,
      tokens: { input: usage.inputTokens, output: usage.outputTokens, total: usage.totalTokens },
      durationMs,
      guards,
      cost: { agent: usage.cost, judges: scored?.judgesCost ?? 0 },
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

/**
 * The tools of an agent that replays recorded sessions. A call that was recorded with the same arguments returns the
 * recorded result. Other calls run only if their tool is read-only, otherwise they end the session. People, clients and
 * sub-agents are not involved.
 */
const playTools = (tools: ToolSet, sessions: ReadonlyMap<string, SessionCalls>): ToolSet =>
  wrapTools(tools, {
    trim: ({ maxCalls: _maxCalls, keepsHandle: _keepsHandle, skill: _skill, ...traits }) => traits,
    wrap: (tool) => ({
      ...tool,
      client: false,
      needsApproval: false,
      execute: async (input: unknown, execution: ToolExecution) => {
        const session = sessions.get(execution.sessionId)
        const recorded = await session?.take(tool, input)
        if (recorded) return giveResult(recorded.result)
        const why = await findObstacle(tool, input, execution)
        if (why === null) return tool.execute?.(input, execution)
        session?.diverge(tool.name, input, why)
        throw new ToolError('failed', `This call cannot be played: ${why}.`)
      },
    }),
  })

type SessionCalls = ReturnType<typeof createSessionCalls>

function createSessionCalls(recorded: readonly RecordedResult[]) {
  const abort = new AbortController()
  const byTool = new Map<string, Promise<Map<string, RecordedResult[]>>>()
  const calls = {
    signal: abort.signal,
    diverged: undefined as EvaluatedRun['diverged'],
    /** Repeated calls return their results in order, and then keep returning the last one. */
    async take(tool: Tool, input: unknown): Promise<RecordedResult | undefined> {
      const own = () => recorded.filter(({ name }) => name === tool.name)
      const known = await getOrCreate(byTool, tool.name, () => readCalls(tool, own()))
      const results = known.get(toCanonicalJson(input))
      return results !== undefined && results.length > 1 ? results.shift() : results?.[0]
    },
    diverge(tool: string, input: unknown, why: string): void {
      calls.diverged ??= { tool, arguments: (toCanonicalJson(input) ?? '').slice(0, 2000), why }
      abort.abort(new Error(`Diverged: ${why}.`))
    },
  }
  return calls
}

/** Parses recorded arguments with the current schema. Calls that no longer match the schema are dropped. */
async function readCalls(
  tool: Tool,
  calls: readonly RecordedResult[],
): Promise<Map<string, RecordedResult[]>> {
  const byInput = new Map<string, RecordedResult[]>()
  for (const call of calls) {
    const parsed = await parseArguments(tool, call.arguments)
    if (!parsed.ok) continue
    const key = toCanonicalJson(parsed.input)
    getOrCreate(byInput, key, () => []).push(call)
  }
  return byInput
}

/** Why a call that was not recorded must not run, or null. */
async function findObstacle(tool: Tool, input: unknown, { context }: ToolExecution): Promise<string | null> {
  const what = 'the session has no such call'
  if (tool.delegate) return `${what}, and sub-agents do not run in a replay`
  if (tool.client) return `${what}, and no client can execute it`
  if (!tool.readOnly) return `${what}, and its tool is not readOnly`
  if (await needsPerson(tool, input, context)) return `${what}, and a person would have to approve it`
  return null
}

const prefixPattern =
  /^The tool '[\w-]+' (failed|failed, possibly temporarily|refused this call because of its policy): /

function giveResult({ status, content, media, errorKind }: RecordedResult['result']): unknown {
  if (status === 'ok') return media && media.length > 0 ? new ToolContent(content, media, true) : content
  // The run adds the tool name again.
  throw new ToolError(errorKind ?? 'failed', content.replace(prefixPattern, ''))
}

interface CaseOutcome extends Pick<EvaluatedRun, 'steps' | 'durationMs' | 'guards' | 'error' | 'diverged'> {
  session: string
  result: RunResult | null
  usage: Usage
}

interface CaseRunnerOptions {
  id: string
  parts: AgentParts
  store: SessionStore
  context: unknown
  budgets: BudgetsOption | undefined
  signal: AbortSignal
}

/** Failures that are unrelated to the agent. */
const failures: ReadonlySet<string> = new Set([
  'provider_error',
  'incomplete_response',
  'store_error',
  'internal',
  'shared_budget',
])

function createCaseRunner({ id, parts, store, context, budgets, signal }: CaseRunnerOptions) {
  const played = new Map<string, SessionCalls>()
  const tools = playTools(parts.tools, played)
  const agent = rebindAgent(parts, store)
  const player = rebindAgent(parts, store, { tools, telemetry: undefined })
  const definition = createDefinitionFactory(parts)(undefined).hash
  const runOptions = { context, ...(budgets && { budgets }) }

  const createTags = (one: EvaluationCase): SessionTags => ({
    [evaluationTag]: id,
    case: one.id,
    input: sha256(JSON.stringify(one.input)).slice(0, 16),
  })

  async function runInput(session: string, one: EvaluationCase): Promise<EndedCase | null> {
    const tags = createTags(one)
    const run = (await isBegun(session, tags))
      ? await agent.resume(session, runOptions)
      : agent.run(one.input, { session, tags, ...runOptions })
    const result = await settleRun(run, signal)
    return result && { result, usage: result.usage, steps: result.steps }
  }

  /** Whether an earlier evaluation started this case. @throws {EvaluationError} for another agent or input */
  async function isBegun(session: string, tags: SessionTags): Promise<boolean> {
    if ((await store.get(session)) === null) return false
    const folded = await readSessionAt(store, session)
    if (folded.run === null) return false
    const isOtherAgent = folded.definition !== null && folded.definition.hash !== definition
    if (!isOtherAgent && folded.tags['input'] === tags['input']) return true
    const what = isOtherAgent
      ? 'an agent with different instructions, tools or model'
      : 'different input for the same case id'
    throw new EvaluationError(
      'other_evaluation',
      `Session '${session}' of evaluation '${id}' was started with ${what}. Give this evaluation a new id or delete ` +
        "that session ('statewright sessions delete').",
      session,
    )
  }

  /** Starts a run for each user message. Calls are answered from the log. */
  async function playRecorded(
    session: string,
    one: EvaluationCase,
    { calls: recordedCalls, turns }: RecordedSession,
  ): Promise<EndedCase | null> {
    if ((await store.get(session)) !== null) await player.deleteSession(session)
    const calls = createSessionCalls(recordedCalls)
    played.set(session, calls)
    const ended: EndedCase = { result: null, usage: noUsage, steps: 0 }
    const tags = createTags(one)
    try {
      for (const turn of turns) {
        const run = player.run(turn, { session, tags, signal: calls.signal, ...runOptions })
        const result = await settleRun(run, signal)
        if (result === null) return null
        ended.result = result
        ended.usage = addUsage(ended.usage, result.usage)
        ended.steps += result.steps
        if (calls.diverged) return { ...ended, diverged: calls.diverged }
        if (result.resumable || findFailure(result)) break
      }
      return ended
    } finally {
      played.delete(session)
    }
  }

  return {
    definition,
    /**
     * Runs or continues a case. Returns null if the signal stopped it.
     * @throws {ConfigError} for problems that affect all cases
     * @throws {EvaluationError} `other_evaluation`
     */
    async run(one: EvaluationCase, repeat: number): Promise<CaseOutcome | null> {
      const session = toSessionId(id, one.id, repeat)
      const none: CaseOutcome = { session, result: null, usage: noUsage, steps: 0, durationMs: 0, guards: [] }
      try {
        const ended = await (one.recorded ? playRecorded(session, one, one.recorded) : runInput(session, one))
        if (ended === null) return null
        const facts = await readRunFacts(store, session)
        const failure = ended.diverged ? undefined : findFailure(ended.result)
        return { ...none, ...ended, ...facts, ...(failure && { error: failure }) }
      } catch (error) {
        if (error instanceof ConfigError || error instanceof EvaluationError) throw error
        if (signal.aborted) return null
        const code = error instanceof StatewrightError ? error.code : 'internal'
        return { ...none, error: { code, message: describeError(error) } }
      }
    },
    forget: ({ session }: CaseOutcome) => agent.deleteSession(session),
  }
}

type EndedCase = Pick<CaseOutcome, 'result' | 'usage' | 'steps' | 'diverged'>

function findFailure(result: RunResult | null): EvaluatedRun['error'] | undefined {
  if (result?.state !== 'ERROR' && result?.state !== 'BUDGET_EXCEEDED') return undefined
  if (!failures.has(result.reason)) return undefined
  const { code, message } = result.error
  return { code, message }
}

/** The session id of a case. If a case id is not valid in session ids, it is hashed. */
export function toSessionId(evaluation: string, caseId: string, repeat: number): string {
  const id = `${evaluation}.${caseId}.${repeat}`
  // Leaves room for a scorer's suffix.
  if (isSessionId(id) && id.length <= 130) return id
  return `${evaluation}.${sha256(caseId).slice(0, 32)}.${repeat}`
}

async function readRunFacts(
  store: SessionStore,
  session: string,
): Promise<Pick<CaseOutcome, 'durationMs' | 'guards'>> {
  const records = await store.read(session)
  const guards = [...replayEvents(records, session)].flatMap(({ events }) =>
    events.flatMap((event): GuardSaid[] => {
      if (event.type !== 'guardrail') return []
      const { guard, action, message } = event
      return [{ guard, action, message: message.slice(0, 600) }]
    }),
  )
  return { durationMs: measureWork(records, session), guards }
}

/** The time between records of the same run, excluding pauses between runs and before a resume. */
function measureWork(records: readonly LogRecord[], session: string): number {
  let [total, before] = [0, 0]
  for (const record of records) {
    const entry = openRecord(record, record.seq - 1, session)
    const begins =
      entry.type === 'opened' ||
      entry.type === 'start' ||
      (entry.type === 'event' && entry.event.type === 'RESUMED')
    if (!begins && before > 0) total += Math.max(0, record.at - before)
    before = record.at
  }
  return total
}
