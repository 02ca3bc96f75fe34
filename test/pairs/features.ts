import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { BudgetError, createBudget, type SharedBudget } from '../../src/fleet/index.js'
import { skills } from '../../src/skills/index.js'
import {
  type AgentEvent,
  type AgentOptions,
  defineGuard,
  memoryStore,
  type Policy,
  type PolicyDecision,
  type SessionStore,
} from '../../src/index.js'
import { findClientId } from '../../src/core/sessions/find-turn.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { DeedName, Manner } from '../chaos/deeds.js'
import type { FaultName } from '../chaos/faults/index.js'
import type { Plan } from '../chaos/plan.js'
import type { ToolName } from '../chaos/tools.js'
import type { tellings } from './elsewhere.js'

/** One feature's additions to a run. */
export interface Feature {
  plan?: Partial<Plan>
  /** In addition to the plan's settings. */
  options?: Partial<AgentOptions>
  /** Policies of the run, in addition to the policies of the other feature. */
  policies?: readonly Policy[]
  /** No call of the tool runs without approvals of this many different people. */
  votes?: { of: string; atLeast: number }
  /** The same, created for each play of a cell. */
  createOptions?: () => Partial<AgentOptions>
  /** Answers that the feature needs. They are mixed with the other feature's answers. */
  answers?: readonly (FaultName | { calls: readonly string[] })[]
  /** The tools that the run calls by name. `pay` waits for a person, `pick` for the client. */
  calls?: readonly ('pay' | 'pick' | 'research')[]
  /** The tools' behavior, instead of success. */
  tool?: ToolName
  /** A person's or another process's action at a random moment. */
  deed?: DeedName
  /** How people answer. */
  manner?: Manner
  /** Other actions on the session. */
  fate?:
    | 'goes on elsewhere'
    | 'is forked'
    | 'is driven'
    | 'is driven, and stopped'
    | 'is called over MCP'
    | 'is asked on a page'
    | 'is forked asleep'
  /** Milliseconds by which the clocks of its driving processes are ahead, one process after the other. */
  skews?: readonly number[]
  /**
   * Messages to the session from an agent without a handle of the run. `answers` covers all pending requests.
   */
  message?: keyof typeof tellings | 'answers'
  /** The run's input, instead of a text. */
  history?: true
  /** The evidence that it took part. At least one run of its row must show it. */
  shows?: (event: AgentEvent) => boolean
  /** Features that it cannot be combined with. */
  never?: readonly string[]
}

const watching = (action: 'nudge' | 'block' | 'halt', onHalt: 'error' | 'pause' = 'error') =>
  ({
    guards: [defineGuard({ name: 'watch', onHalt, verdict: () => ({ action, message: 'Mind.' }) })],
  }) as const

const windowed = (window: NonNullable<Plan['window']>): Feature => ({
  shows: ({ type }) => type === 'context_fitted',
  plan: { window },
  answers: ['calls several tools', 'calls several tools'],
  tool: 'returns a huge text',
})

/** It refuses the second request of a cell and every third one after that, for a window or for good. */
function createRefusingBudget(waitMs: number | null): SharedBudget {
  let requestCount = 0
  const none = { usd: 0, tokens: 0 }
  return {
    id: 'refusing',
    reserveOutputTokens: 1000,
    needsPrice: false,
    reserve: async () => {
      requestCount += 1
      if (requestCount % 3 !== 2) return { settle: async () => undefined }
      throw new BudgetError('budget_exceeded', 'The budget is used up.', 'refusing', { waitMs })
    },
    status: async () => ({
      id: 'refusing',
      limits: {},
      windowAt: null,
      resetsAt: null,
      spent: none,
      reserved: none,
      left: {},
      live: 0,
    }),
    replaceLimits: async () => undefined,
  }
}

/** Decides the calls of one tool, and allows all others. */
const deciding = (
  id: string,
  name: string,
  decide: () => PolicyDecision | Promise<PolicyDecision>,
  more: Partial<Policy> = {},
): Pick<Feature, 'policies'> => ({
  policies: [{ id, decide: ({ tool }) => (tool.name === name ? decide() : 'allow'), ...more }],
})

/** Answers that call `pay`, for grants that cover later calls. */
const payments = (count: number) => Array.from({ length: count }, () => ({ calls: ['pay'] }))

const isGranted = (event: AgentEvent): boolean =>
  event.type === 'approval_decided' && event.outcome === 'granted'

let budgets = 0

/** It pays for every request. At the end of a cell, it must have no open reservation. */
const createLargeBudget = (store: SessionStore): SharedBudget =>
  createBudget({ id: `pairs-${(budgets += 1)}`, tokens: 1e12, store })

let sqlStore: SessionStore | undefined

/** One for all cells. */
function openSqlStore(): SessionStore {
  if (sqlStore) return sqlStore
  const dir = mkdtempSync(path.join(tmpdir(), 'statewright-pairs-budgets-'))
  process.once('exit', () => {
    void sqlStore?.close?.()
    rmSync(dir, { recursive: true, force: true })
  })
  return (sqlStore = fileStore({ dir }))
}

/** Every feature that may meet another in a run. A new feature adds its row. */
export const features = {
  streamed: { shows: ({ type }) => type === 'stream_chunk', plan: { stream: true }, never: ['not streamed'] },
  'streamed arguments': {
    shows: ({ type }) => type === 'tool_call_delta',
    plan: { stream: true },
    answers: ['calls one tool'],
    never: ['not streamed'],
  },
  'not streamed': { plan: { stream: false } },
  'over HTTP': { plan: { overHttp: true } },
  'the Responses API': {
    shows: (event) => event.type === 'assistant_message' && event.message.provider_items !== undefined,
    plan: { api: 'responses' },
  },
  'several calls': { answers: ['calls several tools'] },
  'many calls': { answers: ['many calls'] },
  approval: { shows: ({ type }) => type === 'approval_requested', calls: ['pay'], manner: 'approve' },
  'an edit on approval': {
    shows: ({ type }) => type === 'approval_requested',
    calls: ['pay'],
    manner: 'edit',
  },
  'a rejection': {
    shows: (event) => event.type === 'tool_result' && event.status === 'rejected',
    calls: ['pay'],
    manner: 'reject',
  },
  'an answer twice': { calls: ['pay', 'pick'], manner: 'answer twice' },
  'a policy that denies': {
    shows: (event) => event.type === 'tool_result' && event.errorKind === 'policy_denied',
    ...deciding('limits', 'tool_0', () => ({ decision: 'deny', rule: 'limit', reason: 'Not today.' })),
    answers: ['calls one tool', 'calls several tools'],
    votes: { of: 'tool_0', atLeast: Infinity },
  },
  'a policy that never answers': {
    shows: (event) => event.type === 'policy_decided' && event.rule === 'policy_timeout',
    ...deciding('late', 'tool_0', () => new Promise<never>(() => undefined), { timeoutMs: 2_000 }),
    answers: ['calls one tool'],
    votes: { of: 'tool_0', atLeast: Infinity },
  },
  'a policy that asks': {
    shows: (event) => event.type === 'approval_requested' && event.reason === 'Look at it.',
    ...deciding('careful', 'tool_0', () => ({ decision: 'ask', reason: 'Look at it.' })),
    answers: ['calls one tool'],
    votes: { of: 'tool_0', atLeast: 1 },
  },
  'a policy in the shadow': {
    shows: (event) => event.type === 'policy_decided' && event.shadow === true,
    ...deciding('next', 'tool_0', () => 'deny', { shadow: true }),
    answers: ['calls one tool'],
  },
  'two approvers': {
    shows: (event) => event.type === 'approval_decided' && event.by?.id === 'person 2',
    ...deciding('payments', 'pay', () => ({ decision: 'ask', approvers: { count: 2 } })),
    calls: ['pay'],
    votes: { of: 'pay', atLeast: 2 },
  },
  'a grant with an approval': {
    shows: isGranted,
    answers: payments(4),
    manner: 'grant',
    votes: { of: 'pay', atLeast: 1 },
  },
  'a grant in advance': {
    shows: isGranted,
    answers: payments(3),
    message: 'grant',
    votes: { of: 'pay', atLeast: 1 },
  },
  'a revoked grant': {
    shows: (event) => event.type === 'grant_changed' && event.change === 'revoked',
    answers: payments(4),
    manner: 'grant',
    message: 'revoke',
    votes: { of: 'pay', atLeast: 1 },
  },
  'a client call': {
    shows: (event) => event.type === 'tool_call' && event.call.function.name === 'pick',
    calls: ['pick'],
  },
  'an approval beside a client call': { calls: ['pay', 'pick'] },
  'a hosted approval': {
    shows: (event) => event.type === 'approval_requested' && event.hosted === true,
    plan: { api: 'responses', hosted: true },
  },
  'a sub-agent': {
    shows: ({ type }) => type === 'child_event',
    plan: { subAgent: true },
    calls: ['research'],
  },
  'an approval of a sub-agent': {
    shows: (event) => event.type === 'approval_requested' && event.path !== undefined,
    plan: { subAgent: true },
    answers: ['calls one tool', 'calls one tool', 'calls one tool'],
    calls: ['research', 'pay'],
  },
  'input redacted': { shows: ({ type }) => type === 'shield', plan: { shields: { input: 'redacts' } } },
  'input blocked': { shows: ({ type }) => type === 'shield', plan: { shields: { input: 'blocks' } } },
  'arguments redacted': {
    shows: ({ type }) => type === 'shield',
    plan: { shields: { toolInput: 'redacts' } },
    answers: ['calls one tool'],
  },
  'arguments blocked': {
    shows: ({ type }) => type === 'shield',
    plan: { shields: { toolInput: 'blocks' } },
    answers: ['calls one tool'],
  },
  'results redacted': {
    shows: ({ type }) => type === 'shield',
    plan: { shields: { toolOutput: 'redacts' } },
    answers: ['calls one tool'],
  },
  'results blocked': {
    shows: ({ type }) => type === 'shield',
    plan: { shields: { toolOutput: 'blocks' } },
    answers: ['calls one tool'],
  },
  'an answer redacted': { shows: ({ type }) => type === 'shield', plan: { shields: { output: 'redacts' } } },
  'an answer blocked': { shows: ({ type }) => type === 'shield', plan: { shields: { output: 'blocks' } } },
  'a shield that takes its time': {
    plan: { shields: { toolInput: 'takes its time', output: 'takes its time' } },
  },
  memory: { shows: ({ type }) => type === 'memory', plan: { memory: 'takes its time' } },
  'deferred tools': {
    shows: ({ type }) => type === 'tools_loaded',
    plan: { deferred: 'append' },
    answers: ['calls one tool', 'calls one tool', 'calls one tool'],
    never: ['deferred tools through another'],
  },
  'deferred tools through another': {
    shows: (event) => event.type === 'tool_result' && event.status === 'not_loaded',
    plan: { deferred: 'dispatch' },
    answers: ['calls one tool', 'calls one tool', 'calls one tool'],
    never: ['deferred tools'],
  },
  'a skill': {
    shows: (event) => event.type === 'tool_result' && event.name === 'load_skill' && event.status === 'ok',
    options: {
      skills: skills({
        list: [{ name: 'looking', description: 'How to look.', allowedTools: ['look'] }],
        load: () => 'Look at it first.',
      }),
    },
    answers: ['loads a skill', 'calls several tools'],
  },
  'a handoff': {
    shows: ({ type }) => type === 'handed_off',
    plan: { handsOver: true },
    answers: ['hands over', 'calls one tool'],
  },
  'prepared steps': {
    shows: ({ type }) => type === 'step_prepared',
    options: { prepareStep: ({ step }) => ({ instructions: `Step ${step}.`, sampling: { temperature: 0 } }) },
  },
  'stopping with results': {
    options: { stopWhen: ({ results }) => results.some(({ status }) => status === 'ok') },
    answers: ['calls one tool', 'calls several tools'],
  },
  'structured output': { plan: { structured: true } },
  'a sliding window': windowed('sliding_window'),
  'a compact window': windowed('compact'),
  'a summary': windowed('summarize'),
  continuation: { answers: ['truncated'] },
  'a truncated call': { answers: ['a truncated call'] },
  'a retry': { shows: ({ type }) => type === 'retry', answers: ['status 500', 'cut in the body'] },
  'a rate limit': { shows: ({ type }) => type === 'retry', answers: ['status 429 with seconds'] },
  'content that the provider refuses': {
    shows: (event) => event.type === 'warning' && event.code === 'content_refused',
    answers: ['calls one tool', 'flagged content'],
  },
  'an empty answer': { answers: ['an empty answer'] },
  'calls of one id': { answers: ['calls with one id again', 'calls with one id again'] },
  'calls without ids': { answers: ['no ids'] },
  'odd arguments': { answers: ['odd arguments'] },
  'a failing tool': { answers: ['calls one tool', 'calls one tool'], tool: 'throws an error' },
  'a sleep': {
    shows: (event) => event.type === 'state_changed' && event.reason === 'sleeping',
    answers: ['calls one tool'],
    tool: 'lets the run sleep',
  },
  'a picture as a result': {
    shows: (event) => event.type === 'tool_result' && event.media !== undefined,
    answers: ['calls one tool', 'calls one tool'],
    tool: 'returns a picture',
  },
  'a handle and a question of a server': {
    shows: (event) => event.type === 'tool_result' && event.content.includes('"job":1'),
    answers: ['calls one tool', 'calls one tool'],
    tool: 'keeps a handle and asks a person',
  },
  'a hanging tool': { answers: ['calls one tool'], tool: 'hangs' },
  'a slow tool': { answers: ['calls several tools'], tool: 'works later' },
  'progress of a tool': {
    shows: ({ type }) => type === 'tool_progress',
    answers: ['calls one tool'],
    tool: 'tells any progress',
  },
  'a token budget': {
    shows: (event) => event.type === 'state_changed' && event.to === 'BUDGET_EXCEEDED',
    options: { limits: { tokenBudget: 60 } },
    answers: ['calls one tool', 'calls one tool'],
  },
  'a cost limit': {
    shows: (event) => event.type === 'state_changed' && event.to === 'BUDGET_EXCEEDED',
    options: {
      limits: { costLimit: 0.0001 },
      prices: { 'chaos-1': { inputPerMillion: 1, outputPerMillion: 1 } },
    },
    answers: ['calls one tool', 'calls one tool', 'calls one tool'],
  },
  'a step cap': {
    shows: (event) => event.type === 'state_changed' && event.to === 'MAX_STEPS',
    plan: { maxSteps: 2 },
    answers: ['calls one tool', 'calls one tool'],
  },
  'a conclusion': {
    shows: (event) => event.type === 'state_changed' && event.to === 'MAX_STEPS',
    plan: { maxSteps: 2, conclude: true },
    answers: ['calls one tool', 'calls one tool'],
  },
  'a deadline': {
    shows: (event) => event.type === 'state_changed' && event.to === 'TIMED_OUT',
    plan: { timeoutMs: 45_000 },
    answers: ['late headers'],
  },
  'the next message': {
    shows: (event) => event.type === 'state_changed' && event.to === 'WAITING_FOR_INPUT',
    plan: { interactive: true },
  },
  'a nudge': {
    shows: ({ type }) => type === 'guardrail',
    options: watching('nudge'),
    answers: ['calls one tool'],
  },
  'a block': {
    shows: ({ type }) => type === 'guardrail',
    options: watching('block'),
    answers: ['calls one tool'],
  },
  'a halt': {
    shows: ({ type }) => type === 'guardrail',
    options: watching('halt'),
    answers: ['calls one tool'],
  },
  'a halt that pauses': {
    shows: ({ type }) => type === 'guardrail',
    options: watching('halt', 'pause'),
    answers: ['calls one tool'],
  },
  'a cap on tool calls': {
    shows: (event) => event.type === 'tool_result' && event.content.startsWith('Not executed: all'),
    options: { limits: { maxToolCalls: 1 } },
    answers: ['calls several tools', 'calls several tools'],
  },
  'a shared budget': {
    createOptions: () => ({ budgets: [createLargeBudget(memoryStore())] }),
  },
  'a shared budget in SQLite': {
    createOptions: () => ({ budgets: [createLargeBudget(openSqlStore())] }),
    answers: ['calls one tool', 'cut in the body'],
    never: ['a shared budget', 'a shared budget that ends the run', 'a shared budget that is waited for'],
  },
  'a shared budget that ends the run': {
    shows: (event) => event.type === 'state_changed' && event.reason === 'shared_budget',
    createOptions: () => ({ budgets: [createRefusingBudget(null)] }),
    answers: ['calls one tool', 'calls one tool'],
    never: ['a shared budget', 'a shared budget that is waited for'],
  },
  'a shared budget that is waited for': {
    shows: (event) => event.type === 'state_changed' && event.wakeAt !== undefined,
    createOptions: () => ({ budgets: [createRefusingBudget(3_600_000)] }),
    answers: ['calls one tool', 'calls one tool'],
    never: ['a shared budget'],
  },
  'a limiter': {
    shows: ({ type }) => type === 'waiting_for_slot',
    plan: { limited: true },
    answers: ['calls one tool', 'calls one tool'],
  },
  repetition: {
    shows: ({ type }) => type === 'guardrail',
    answers: Array.from({ length: 6 }, () => 'calls with one id again' as const),
  },
  steering: { deed: 'steers' },
  'a pause': { shows: (event) => event.type === 'state_changed' && event.to === 'PAUSED', deed: 'pauses' },
  'a cancel': {
    shows: (event) => event.type === 'state_changed' && event.to === 'CANCELLED',
    deed: 'cancels',
  },
  'an abort': {
    shows: (event) => event.type === 'state_changed' && event.to === 'CANCELLED',
    deed: 'aborts',
  },
  'steering from elsewhere': {
    shows: (event) => event.type === 'user_message' && JSON.stringify(event).includes('Told from elsewhere.'),
    message: 'steer',
  },
  'a cancel from elsewhere': {
    shows: (event) => event.type === 'state_changed' && event.to === 'CANCELLED',
    message: 'cancel',
  },
  // A drive sends it in a separate run, and this test drives only one.
  'a message for the next turn': {
    shows: ({ type }) => type === 'message_queued',
    message: 'queue',
    never: ['driven', 'driven and stopped', 'clocks that differ'],
  },
  'answers from elsewhere': {
    shows: ({ type }) => type === 'approval_requested',
    calls: ['pay', 'pick'],
    message: 'answers',
  },
  'a history of the app': { history: true },
  // An interactive run keeps its session while it waits.
  'going on elsewhere': { fate: 'goes on elsewhere', calls: ['pay'], never: ['the next message'] },
  'a fork': { fate: 'is forked' },
  'a fork that sleeps and is deleted': {
    shows: (event) => event.type === 'state_changed' && event.wakeAt !== undefined,
    answers: ['calls one tool'],
    tool: 'lets the run sleep',
    fate: 'is forked asleep',
    // `runSession` does not accept interactive runs.
    never: ['the next message'],
  },
  // `runSession` does not accept interactive runs.
  driven: { fate: 'is driven', calls: ['pay'], never: ['the next message', 'going on elsewhere'] },
  'a call of an MCP client': {
    fate: 'is called over MCP',
    calls: ['pay', 'pick'],
    // Requests have no sender.
    never: [
      'two approvers',
      'the next message',
      'a message for the next turn',
      'a history of the app',
      'an abort',
      'going on elsewhere',
      'driven',
      'driven and stopped',
      'clocks that differ',
    ],
  },
  'a chat page that retries': {
    shows: (event) => event.type === 'user_message' && findClientId(event.message) === 'u1',
    fate: 'is asked on a page',
    calls: ['pay', 'pick'],
    // Every request gets all of the many calls again.
    never: [
      'two approvers',
      'many calls',
      'the next message',
      'a message for the next turn',
      'a history of the app',
      'an abort',
      'going on elsewhere',
      'driven',
      'a call of an MCP client',
      'driven and stopped',
      'clocks that differ',
    ],
  },
  'driven and stopped': {
    fate: 'is driven, and stopped',
    calls: ['pay'],
    tool: 'works later',
    never: ['the next message', 'going on elsewhere', 'driven'],
  },
  'clocks that differ': {
    fate: 'is driven, and stopped',
    skews: [0, 3_600_000, -3_600_000, 86_400_000, -5_000],
    calls: ['pay'],
    tool: 'works later',
    never: ['the next message', 'going on elsewhere', 'driven', 'driven and stopped'],
  },
} satisfies Record<string, Feature>

export type FeatureName = keyof typeof features

export const featureNames = Object.keys(features) as FeatureName[]
