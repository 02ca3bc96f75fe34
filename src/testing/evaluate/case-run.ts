import { getOrCreate } from '../../core/base/values.js'
import type { ToolSet } from '../../core/tools/tool-set.js'
import { releaseRun } from '../../core/live/release-run.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { addUsage, noUsage, type Usage } from '../../../machines/agent/usage.js'
import { createDefinitionFactory } from '../../core/agent/agent-internals.js'
import type { BudgetsOption } from '../../core/budgets/shared-budget.js'
import { describeError, ConfigError, StatewrightError } from '../../core/base/errors.js'
import type { AgentParts } from '../../core/live/agent-parts.js'
import { isSessionId } from '../../core/sessions/store/session-id.js'
import type { SessionTags } from '../../core/sessions/store/session-tags.js'
import type { SessionStore, LogRecord } from '../../core/sessions/store/store.js'
import { readSessionAt } from '../../core/sessions/replay-session.js'
import { replayEvents } from '../../core/run/watch-session.js'
import { openRecord } from '../../core/sessions/log/log-record.js'
import {
  EvaluationError,
  type EvaluationCase,
  evaluationTag,
  type RecordedResult,
  type RecordedSession,
} from './evaluation-case.js'
import type { EvaluatedRun, GuardSaid } from './evaluation-report.js'
import { rebindAgent, wrapTools } from '../rebind-agent.js'
import { whenAborted } from '../../core/base/abort.js'
import type { Run } from '../../core/run/run.js'
import { parseArguments } from '../../core/tools/parse-arguments.js'
import { needsPerson } from '../../core/tools/prepare-calls.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { ToolContent } from '../../core/tools/tool-content.js'
import type { Tool, ToolExecution } from '../../core/tools/tool.js'
import { toCanonicalJson } from '../canonical-json.js'

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
    // oxlint-disable-next-line no-await-in-loop -- most tools read them at once
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

export interface CaseOutcome extends RunFacts {
  session: string
  result: RunResult | null
  usage: Usage
  steps: number
  error?: EvaluatedRun['error']
  diverged?: EvaluatedRun['diverged']
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

export function createCaseRunner({ id, parts, store, context, budgets, signal }: CaseRunnerOptions) {
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
        // oxlint-disable-next-line no-await-in-loop -- one turn after the other
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

/** A failure that is unrelated to the agent. */
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

interface RunFacts {
  durationMs: number
  guards: GuardSaid[]
}

async function readRunFacts(store: SessionStore, session: string): Promise<RunFacts> {
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
  let [total, before, head] = [0, 0, records[0]?.type === 'snapshot' ? records[0].seq - 1 : 0]
  for (const record of records) {
    const entry = openRecord(record, head, session)
    head = record.seq
    const begins =
      entry.type === 'opened' ||
      entry.type === 'start' ||
      (entry.type === 'event' && entry.event.type === 'RESUMED')
    if (!begins && before > 0) total += Math.max(0, record.at - before)
    before = record.at
  }
  return total
}

/** Follows a run until it settles, and releases it. Null if stopped: `agent.resume` continues it. */
export async function settleRun(run: Run, signal: AbortSignal): Promise<RunResult | null> {
  let unfollow = (): void => undefined
  const stopped = new Promise<null>((resolve, reject) => {
    unfollow = whenAborted(signal, () => {
      run.started.then(() => releaseRun(run)).then(() => resolve(null), reject)
    })
  })
  stopped.catch(() => undefined)
  try {
    const result = await Promise.race([run.result, stopped])
    if (result?.resumable === true) await releaseRun(run)
    return result
  } finally {
    unfollow()
    run.result.catch(() => undefined)
  }
}
