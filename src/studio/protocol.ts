import type { Message } from '../../machines/agent/messages.js'

/**
 * What the page and its server say to each other. Everything is JSON; texts are what a model or a tool wrote, shown as
 * text and never as HTML. Secrets are redacted and withheld content is left out before anything gets here.
 *
 * GET  /api/chart                       → ChartView
 * GET  /api/visits                      → VisitsView
 * GET  /api/sessions                    → SessionsView
 * GET  /api/sessions/ID                 → SessionView
 * GET  /api/sessions/ID/end             → EndView: what is to be seen first of a long one
 * GET  /api/sessions/ID/moments/SEQ     → MomentView
 * GET  /api/sessions/ID/moments?from=&to= → PackedMoments, read with `unpackMoment`; at most 256 of them
 * GET  /api/compare?a=ID&b=ID           → CompareView
 * GET  /api/live?session=ID&after=SEQ   → server-sent events, each a LiveMessage: of the list, and of this session what
 *                                         comes after record SEQ (without `session`: of the list alone)
 * POST /api/sessions/ID/answers         Answer → Done
 * POST /api/sessions/ID/fork            ForkRequest → Done
 *
 * What is refused answers with its status and a Refusal. Addresses are made by `paths` of routes.ts; all of them are
 * below the page's own.
 */
export interface Refusal {
  error: { code: string; message: string; key?: string }
}

export interface SessionsView {
  /** The store, in words. */
  store: string
  /** Why there are no actions; null where there are. */
  readOnly: string | null
  sessions: SessionRow[]
}

export interface SessionRow {
  id: string
  name: string | null
  /** Those that wait for a person come first, then running, interrupted, ended, damaged. */
  standing: 'waiting' | 'running' | 'interrupted' | 'ended' | 'damaged'
  /** Of the latest run: an agent state, its reason; null before the first and for damaged ones. */
  state: string | null
  reason: string | null
  /** The latest user message, cut. */
  title: string
  /** Of the latest run; null until its log has been read. */
  steps: number | null
  tokens: number
  /** USD; null where it is not known. */
  cost: number | null
  createdAt: number
  updatedAt: number
  records: number
  /** The process that writes to it, in words; null when nobody does. */
  holder: string | null
  /** Streams live, because its run is attached to this studio. */
  isAttached: boolean
  forkedFrom: { sessionId: string; seq: number } | null
  /** Why it cannot be read. */
  problem: string | null
}

/** One record of the log, and what the chart did with it. */
export interface RecordRow {
  seq: number
  /** Milliseconds since the epoch. */
  at: number
  type: 'opened' | 'start' | 'event' | 'snapshot'
  /** In a few words: `RESPONSE: 2 calls`, `read_file done`. */
  label: string
  /** Paths of states, dotted, the innermost ones that are active: `RUNNING.asking.requesting`. */
  from: string[]
  to: string[]
  /** Ids of the transitions taken, as in ChartView. */
  taken: string[]
  state: string
  /** The run's step, from 1; 0 before the first. */
  step: number
  run: number
  tokens: number
  cost: number | null
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
  /** What it started: requests, batches, shields, children. */
  started: string[]
}

/** A bar of the timeline. */
export interface Bar {
  /** Of its session: a bar that comes again replaces the one before. */
  id: number
  lane: 'model' | 'tools' | 'shields' | 'memory' | 'waits' | 'children'
  label: string
  from: number
  /** Null while it lasts. */
  to: number | null
  /** The records at which it begins and ends. */
  fromSeq: number
  toSeq: number | null
  status: 'ok' | 'failed' | 'running' | 'waiting' | 'interrupted'
  /** A sub-agent's session, to go there. */
  sessionId?: string
}

export interface SessionView {
  session: SessionRow
  /** Why it can be neither answered nor forked; null where it can. A run that is attached can be answered all the same. */
  readOnly: string | null
  /** Whether `rows`, `bars` and `gaps` begin at a snapshot, and what was before is still to be asked for. */
  isPart: boolean
  rows: RecordRow[]
  bars: Bar[]
  /** Times without a process, between records. */
  gaps: { from: number; to: number }[]
  /** Sessions forked from it. */
  forks: { sessionId: string; seq: number }[]
}

export interface EndView {
  view: SessionView
  /** After the last record; null where there is none. What sub-agents used before `rows` is not counted in it. */
  moment: MomentView | null
}

export interface GuardView {
  name: string
  /** What it counts, now and where it acts; null for what counts nothing. */
  streak: number | null
  threshold: number | null
  evidence: string
  /** `nudge`, `block`, `halt`: what comes next, in words. */
  next: string
  isOn: boolean
}

export interface GaugeView {
  name: 'tokens' | 'output tokens' | 'cost' | 'steps' | 'time'
  /** Null: it is not known. */
  used: number | null
  /** Null: no limit. */
  limit: number | null
  /** Of it, spent by sub-agents. */
  children: number
}

export interface PendingView {
  callId: string
  name: string
  needs: 'approval' | 'client'
  /** JSON text. */
  arguments: string
  fingerprint: string
  /** JSON Schema of the arguments; null without the agent. */
  schema: object | null
}

/** The session after record `seq`. */
export interface MomentView {
  seq: number
  transcript: ShownMessage[]
  /** The record as it was written, redacted. */
  record: unknown
  /** The machine's context, redacted. */
  context: unknown
  /** Paths in the context that the record before had otherwise: `usage.run.totalTokens`. */
  changed: string[]
  guards: GuardView[]
  budget: GaugeView[]
  pending: PendingView[]
  /** What a person may do now; empty without an agent, or away from the end. */
  actions: Answer['type'][]
}

/** Several moments; what stands in more than one of them is a number: the place of its part. */
export interface PackedMoments {
  parts: unknown[]
  moments: {
    seq: number
    changed: string[]
    record: number
    context: number | Record<string, number>
    lists: number[][]
  }[]
}

/** What a page that was exported holds: JSON text in `<script type="application/json" id="statewright">`. */
export interface ExportedSession {
  chart: ChartView
  visits: VisitsView
  session: SessionView
  moments: PackedMoments
}

export interface ShownMessage {
  role: Message['role']
  id: string
  at: number
  text: string
  reasoning: string
  calls: {
    id: string
    name: string
    arguments: string
    result: string | null
    status: string | null
    durationMs: number | null
  }[]
  /** `partial`, `internal`, `withheld`, `edited`, `steering`, …: how it is no plain message. */
  marks: string[]
}

export type Answer =
  | { type: 'approve'; callId: string; fingerprint: string; arguments?: unknown }
  | { type: 'reject'; callId: string; fingerprint: string; why?: string }
  | { type: 'tool_output'; callId: string; fingerprint: string; value: unknown }
  | { type: 'reply'; text: string }
  | { type: 'steer'; text: string }
  | { type: 'pause' }
  | { type: 'resume' }
  | { type: 'cancel'; why?: string }

/** Begins a new session at record `at`; the other one is left as it is. */
export interface ForkRequest {
  at: number
  edit?: ForkEdit
  /** Goes on with the run at once. */
  run?: boolean
}

export type ForkEdit =
  | { message: string; text: string }
  | { call: string; arguments: unknown }
  | { call: string; result: unknown }

export interface Done {
  sessionId: string
}

export type LiveMessage =
  | { type: 'session'; row: SessionRow }
  | { type: 'gone'; sessionId: string }
  /** Rows that are new, and bars that are new or have changed. `reset`: the session begins anew, forget all others. */
  | { type: 'rows'; sessionId: string; rows: RecordRow[]; bars: Bar[]; reset?: true }
  /** Text that streams in, of the answer that is being written; a new attempt begins anew. */
  | { type: 'text'; sessionId: string; stepId: string; text: string; reset: boolean }
  /** The store cannot be read at the moment; null when it can again. */
  | { type: 'store'; problem: string | null }

export interface ChartView {
  id: string
  description: string
  states: ChartState[]
  transitions: ChartTransition[]
  /** Pictures as SVG, whose parts carry `data-state` and `data-transition`: the overview first, then a sheet a state. */
  sheets: { id: string; title: string; svg: string }[]
  /** Stately's editor, where runs are shown in it: its address, and the machine as it takes it. */
  editor?: { url: string; machine: object; withContext: boolean }
}

export interface ChartState {
  /** `RUNNING.asking`. */
  path: string
  description: string
  type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
  /** Whether generated tests enter it; null: nobody knows. */
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
  isTested: boolean | null
}

/** What stored sessions did on the chart. */
export interface VisitsView {
  /** How many of them were looked at: those written last. */
  sessions: number
  /** How often a transition was taken, or a state entered, by its id or path; what is missing was not. */
  counts: Record<string, number>
}

export interface CompareView {
  a: SessionView
  b: SessionView
  /** Messages and records that both have from the beginning. */
  commonRecords: number
  commonMessages: number
  steps: { step: number; a: CompareStep | null; b: CompareStep | null; isSame: boolean }[]
}

export interface CompareStep {
  seq: number
  text: string
  calls: { name: string; arguments: string; result: string | null }[]
  tokens: number
  cost: number | null
  ms: number
}
