import type { Message } from '../../machines/agent/messages.js'
import type { Elicitation, PendingCall } from '../../machines/agent/run-result.js'
import type { StepMark } from '../core/sessions/store/step-marks.js'
import type { CostSum } from './costs.js'
import type { Answer, SavedView } from './requests.js'
import type { QueryKey, sessionStatuses } from './session-query.js'
export type { Answer, ForkRequest, SavedView, TextEdit } from './requests.js'

// The protocol between the page and its server. It is JSON without secrets or unscreened content. routes.ts has the
// addresses.

export interface Refusal {
  error: { code: string; message: string; key?: string }
}

export interface SessionsView {
  store: string
  /** Why actions are not possible. Null if they are. */
  readOnly: string | null
  /** One page of the matching sessions. Sub-agents are listed below their session. */
  sessions: SessionRow[]
  /** The number of matching sessions, in total and by status. */
  total: number
  counts: Partial<Record<SessionRow['status'], number>>
  /** Listed sessions, and those that have not been listed or read for a search yet. */
  known: number
  unread: number
  /** Whether the whole store has been listed. Until then, counts are partial. */
  isWhole: boolean
  /** The most frequent values to filter by, with the number of matching sessions. */
  facets: Partial<Record<QueryKey, [value: string, count: number][]>>
  days: DayView[]
  budgets: BudgetView[]
  views: SavedView[]
}

export interface BudgetView {
  id: string
  unit: 'usd' | 'tokens'
  spent: number
  reserved: number
  limit: number
  /** When the budget resets. Null if it never does. */
  resetsAt: number | null
}

export interface DayView {
  /** `2026-11-26`, in UTC. */
  day: string
  sessions: number
  cost: CostSum
  /** Number of failed sessions by reason. */
  failures: Record<string, number>
}

export interface SessionRow {
  id: string
  name: string | null
  /** `waiting` for a person, or `sleeping` until a date. */
  status: (typeof sessionStatuses)[number]
  /** State and reason of the latest run. Null before the first run and for damaged sessions. */
  state: string | null
  reason: string | null
  /** The state of a `statewright/durable` machine. Null for agents. */
  value: string | null
  /** When a sleeping run wakes up, or the next question of a waiting run expires. */
  wakeAt: number | null
  title: string
  /** The session's own steps in all runs. Null until the log has been read. */
  steps: number | null
  /** Milliseconds from the first record to the last. Approximate until the log has been read. */
  duration: number
  /** The number of failed calls. 0 until the log has been read. */
  failedCalls: number
  /** The session's own tokens. For a fork, includes inherited tokens until its log has been read. */
  tokens: number
  /** The session's own cost in USD, counted like `tokens`. Null if unknown. */
  cost: number | null
  createdAt: number
  updatedAt: number
  records: number
  holder: string | null
  isAttached: boolean
  forkedFrom: { sessionId: string; seq: number } | null
  /** The usage that a fork copied from its original. Null for other sessions. */
  inherited: { tokens: number; cost: number | null } | null
  tags: Record<string, string>
  /** The agent that started the latest run, as named in `defineAgents`. */
  agent: string | null
  /** The models that answered. Empty until the log has been read. */
  models: string[]
  /** The session that called this sub-agent. Null for other sessions. */
  parent: string | null
  children: number
  marks: StepMark[]
  problem: string | null
}

export interface RecordRow {
  seq: number
  at: number
  type: 'opened' | 'start' | 'event' | 'snapshot'
  /** A short description, such as `answer: 2 calls` or `read_file ok`. */
  label: string
  /** Paths of the innermost active states, such as `RUNNING.asking.requesting`. */
  from: string[]
  to: string[]
  transitionIds: string[]
  state: string
  /** When a sleeping run wakes up, in milliseconds since the epoch. */
  wakeAt?: number
  /** Number of the step, from 1. 0 is before the first step. */
  step: number
  run: number
  /** Totals up to this record, without inherited usage. */
  tokens: number
  cost: number | null
  /** The cost of this record alone, in USD. Null if its usage has no price. */
  paid: number | null
  spent?: Spending
  flags: (
    | 'retry'
    | 'nudge'
    | 'block'
    | 'halt'
    | 'budget'
    | 'resume'
    | 'fork'
    | 'error'
    | 'truncated'
    | 'wait'
  )[]
  /** Work started by the record, such as requests, batches, shields and sub-agents. */
  started: string[]
  calls: SettledCall[]
}

export interface Spending {
  by: 'model' | 'tool' | 'sub-agent'
  /** The model as the provider names it, or the tool. Empty if the provider named none. */
  name: string
  tokens: number
}

export interface SettledCall {
  id: string
  name: string
  /** `ok`, `error`, `blocked`, `not_executed`, … */
  status: string
  isReadOnly: boolean
}

/** Why a session stopped, and its totals, without inherited usage. */
export interface VerdictView {
  /** State of the latest run. Null before the first. */
  state: string | null
  reason: string | null
  /** Why the run stopped and which key allows more, or why it waits. Empty before the first run. */
  text: string
  /** The first line of a completed run's answer, as plain text. */
  answer: string
  seq: number
  inputTokens: number
  cachedTokens: number
  cost: CostSum
  /** Number of answered steps in all runs. In a partial view, only the steps of its runs. */
  steps: number
}

export interface Bar {
  /** The id of the bar, which is unique in the session. A bar with the same id replaces the earlier bar. */
  id: number
  lane: 'model' | 'tools' | 'shields' | 'memory' | 'waits' | 'children'
  label: string
  from: number
  /** The end of the bar. Null while the work is active. */
  to: number | null
  fromSeq: number
  toSeq: number | null
  status: 'ok' | 'failed' | 'running' | 'waiting' | 'interrupted'
  sessionId?: string
}

export interface SessionView {
  session: SessionRow
  /** Why the session can be neither answered nor forked, or null. An attached run can always be answered. */
  readOnly: string | null
  otherAgent: string | null
  /** Whether `rows`, `bars` and `gaps` start at a snapshot and earlier records still have to be loaded. */
  isPart: boolean
  verdict: VerdictView
  parent: string | null
  rows: RecordRow[]
  bars: Bar[]
  /** Periods between records when no process ran the session. */
  gaps: { from: number; to: number }[]
  forks: { sessionId: string; seq: number }[]
}

export interface EndView {
  view: SessionView
  /** Null without records. Of a partial view: the latest messages, without sub-agent usage before `rows`. */
  moment: MomentView | null
}

export interface GuardView {
  name: string
  watches: string
  /** The count and the threshold of the guard. Null for guards that do not count. */
  streak: number | null
  threshold: number | null
  evidence: string
  /** The next action as a phrase, such as `nudge at 3`. */
  next: string
  isOn: boolean
}

export interface GaugeView {
  name: 'tokens' | 'output tokens' | 'cost' | 'steps' | 'time'
  used: number | null
  limit: number | null
  children: number | null
  /** The part that a fork copied from its original. Null if unknown. */
  inherited: number | null
}

export interface PendingView {
  callId: string
  name: string
  needs: PendingCall['needs']
  arguments: string
  fingerprint: string
  messageId?: string
  reason?: string
  expiresAt?: number
  onExpiry?: PendingCall['onExpiry']
  /** Whether an approval of this call can also approve later calls with the same arguments. */
  isGrantable: boolean
  /** JSON Schema of the arguments. Null if the studio does not have the agent. */
  schema: object | null
  elicitation?: Elicitation
}

export interface GrantView {
  id: string
  tool: string
  /** The agent that has the tool. Absent for the session's first agent. */
  speaker?: string
  /** The allowed arguments as JSON: exactly these, or conditions by name. `{}` allows any. */
  arguments: string
  isExact: boolean
  usesLeft: number | null
  /** How many calls the grant allows in total. Null if unlimited or unknown. */
  uses: number | null
  /** When the grant expires, in milliseconds since the epoch. Null if the grant does not expire. */
  until: number | null
  givers: string[]
  /** How the grant ended. Null while the grant is active. */
  ended: 'used up' | 'expired' | 'revoked' | null
}

export interface MomentView {
  seq: number
  earlier: number
  transcript: ShownMessage[]
  /** Null if there are none, or if they are unknown because the studio does not have the agent. */
  instructions: InstructionsView | null
  /** The record, with secrets removed. */
  record: unknown
  context: unknown
  /** Context paths that this record changed, such as `usage.run.totalTokens`. */
  changed: string[]
  guards: GuardView[]
  budget: GaugeView[]
  pending: PendingView[]
  grants: GrantView[]
  /** The actions that the page offers. Empty without an agent, or for a record before the last one. */
  actions: Answer['type'][]
}

export interface MachineView {
  session: SessionRow
  machine: string
  status: 'active' | 'done' | 'error' | 'stopped'
  context: unknown
  output?: unknown
  error?: unknown
  actors: string[]
  waits: { event: string; at: number }[]
  /** The sessions of the machine's agents, oldest first. */
  children: SessionRow[]
  /** The latest records, oldest first. */
  records: {
    seq: number
    at: number
    event: string
    data: unknown
    value: string
    refused: string | null
  }[]
}

/** A request to a model. Without the session's agent, the parts that are not in the log are null. */
export interface RequestView {
  seq: number
  step: number
  model: { name: string; provider: string; host: string | null } | null
  instructions: string | null
  /** The messages that were not in the previous request, or all messages. */
  messages: RequestMessage[]
  total: number
  nudges: string[]
  tools: { name: string; description: string | null; parameters: unknown }[]
  /** Sampling, tool choice, response format and other keys of the request. */
  settings: Record<string, unknown> | null
  response: unknown
  answer: {
    model: string | null
    finishReason: string | null
    inputTokens: number
    cachedTokens: number
    outputTokens: number
    reasoningTokens: number
    /** The cost in USD. Null if the price is unknown. */
    cost: number | null
    isEstimated: boolean
  } | null
}

export interface RequestMessage {
  id: string
  role: Message['role']
  text: string
  calls: { name: string; arguments: string }[]
}

/** Several moments. Numbers are indexes into `parts`. */
export interface PackedMoments {
  parts: unknown[]
  moments: {
    seq: number
    earlier: number
    changed: string[]
    record: number
    instructions: number
    context: number | Record<string, number>
    /** Each list starts with the number of items kept from the previous moment's list, followed by the new items. */
    lists: number[][]
  }[]
}

/** The data of an exported page, as JSON in `<script type="application/json" id="statewright">`. */
export interface ExportedSession {
  chart: ChartView
  visits: VisitsView
  session: SessionView
  moments: PackedMoments
}

export interface SharedView {
  content: string
}

/** `page` is an HTML file, `card` an SVG picture, and `film` an animated SVG. */
export type ShareForm = 'page' | 'card' | 'film'

export type CallTarget = Pick<PendingView, 'callId' | 'fingerprint' | 'messageId'>

export interface Done {
  sessionId: string
}

export type LiveMessage =
  | { type: 'session'; row: SessionRow }
  | { type: 'gone'; sessionId: string }
  /** More of the store was listed or read, so a search may find more. */
  | { type: 'list'; known: number; unread: number }
  /** New rows, and new or changed bars. `reset` means that the session was replaced, so all earlier ones must be dropped. */
  | { type: 'rows'; sessionId: string; rows: RecordRow[]; bars: Bar[]; verdict: VerdictView; reset?: true }
  /** Streamed text from an answer. With `reset`, it replaces the previous text. */
  | { type: 'text'; sessionId: string; stepId: string; text: string; reset: boolean }
  /** Why the store cannot be read. Null once it can be read again. */
  | { type: 'store'; problem: string | null }

export interface ChartView {
  id: string
  description: string
  states: ChartState[]
  transitions: ChartTransition[]
  /** SVG with `data-state` and `data-transition`. The overview comes first, then one sheet per state. */
  sheets: { id: string; title: string; svg: string }[]
  /** The address of Stately's editor, and the machine in its format. */
  editor?: { url: string; machine: object; withContext: boolean }
}

export interface ChartState {
  path: string
  description: string
  type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
  /** Whether generated tests cover the state. Null if unknown. */
  isTested: boolean | null
}

export interface ChartTransition {
  id: string
  source: string
  target: string | null
  event: string
  guard: string
  actions: string[]
  description: string
  /** The label of a transition from one outer state to another. Empty for other transitions. */
  words: string
  isTested: boolean | null
}

export interface VisitsView {
  /** Number of sessions counted. Only the latest are counted. */
  sessions: number
  /** How often a transition was taken or a state entered. Absent if never. */
  counts: Record<string, number>
}

export interface CompareView {
  a: SessionView
  b: SessionView
  commonRecords: number
  change: CompareChange | null
  /** The answer that each session ends with. Empty for a session without an answer. */
  answers: { a: string; b: string }
  steps: { step: number; a: CompareStep | null; b: CompareStep | null; isSame: boolean }[]
}

export interface CompareChange {
  kind: 'message' | 'arguments' | 'result' | 'instructions' | 'decision'
  name: string | null
  a: string
  b: string
}

export interface CompareStep {
  seq: number
  userText: string
  text: string
  calls: { name: string; arguments: string; result: string | null }[]
  /** The end of a step without an answer, such as `model failed: server_error`. */
  failure: string | null
  /** Whether a fork copied the step from its original. A copied step has no usage and no duration. */
  isInherited: boolean
  tokens: number
  cost: number | null
  ms: number
}

export interface ShownMedia {
  words: string
  /** A `data:` address of a picture. Null if only the description is shown. */
  picture: string | null
}

/** Matches only bitmap formats, because an SVG is a document. */
const picture = /^data:image\/(?:png|jpeg|gif|webp);base64,[\w+/=]+$/

export const isPicture = (address: string): boolean => picture.test(address)

export interface Decision {
  seq: number
  kind: 'approved' | 'rejected'
  by: string[]
  /** The edited arguments as JSON, or the reason for a rejection. Can be empty. */
  words: string
}

export interface InstructionsView {
  text: string
  /** Where the instructions come from: the `agent` (current), this `step` only, or this `fork` only. */
  from: 'agent' | 'step' | 'fork'
  /** The first record of the run, where a fork with other instructions starts. Null if unknown. */
  forkAt: number | null
}

export interface ShownMessage {
  role: Message['role']
  /** The agent that spoke after a handoff. Absent for the session's first agent. */
  speaker?: string
  id: string
  at: number
  /** The record where a fork applies an edit of the message or of its calls' arguments. Null if unknown. */
  forkAt: number | null
  text: string
  media: ShownMedia[]
  reasoning: string
  calls: {
    id: string
    name: string
    arguments: string
    result: string | null
    /** The record where a fork applies another result. Null if there is no such record yet. */
    forkAt: number | null
    media: ShownMedia[]
    status: string | null
    durationMs: number | null
    decision: Decision | null
    edited?: 'arguments' | 'result'
  }[]
  /** `partial`, `internal`, `withheld`, `edited`, `steering`, … */
  marks: string[]
}
