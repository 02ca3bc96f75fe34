import type { Message } from '../../machines/agent/messages.js'
import type { Elicitation, PendingCall } from '../../machines/agent/run-result.js'
import type { BudgetView } from './studio-views.js'
import type { Answer } from './requests.js'
import type { QueryKey, sessionStandings } from './session-query.js'
export type { Answer, ForkEdit, ForkRequest } from './requests.js'

/**
 * The protocol between the page and its server: JSON, without secrets and uncleared content. Texts are shown as text, not HTML.
 *
 * GET  /api/chart                       → ChartView
 * GET  /api/visits                      → VisitsView
 * GET  /api/sessions?q=&sort=&offset=   → SessionsView: a part of the list, as the query asks
 * GET  /api/sessions/ID                 → SessionView
 * GET  /api/sessions/ID/end             → EndView: what is to be seen first of a long one
 * GET  /api/sessions/ID/moments/SEQ     → MomentView
 * GET  /api/sessions/ID/moments?from=&to=&latest= → PackedMoments, read with `unpackMoment`; at most 256 of them. `latest`: each with
 *                                         the last messages only, at least so many
 * GET  /api/compare?a=ID&b=ID           → CompareView
 * GET  /api/sessions/ID/share?form=&texts= → SharedView: `form` is page, card or film
 * GET  /api/live?session=ID&after=SEQ   → server-sent events, each a LiveMessage: of the list, and of this session after SEQ
 * POST /api/sessions/ID/answers         Answer → Done
 * POST /api/sessions/ID/fork            ForkRequest → Done
 *
 * A refused request is answered with its status and a Refusal. `paths` in routes.ts makes the addresses, below the page's own.
 */
export interface Refusal {
  error: { code: string; message: string; key?: string }
}

export interface SessionsView {
  /** The name of the store. */
  store: string
  /** Why actions are not possible; null when they are. */
  readOnly: string | null
  /** A part of what was found, in the order that was asked for. Sub-agents are below the session that they work for. */
  sessions: SessionRow[]
  /** How many were found, and how many of them there are by standing. */
  total: number
  counts: Partial<Record<SessionRow['standing'], number>>
  /** How many the store has, as far as it has been listed, and how many of them are still to be listed or read for a search. */
  known: number
  unread: number
  /** Whether all have been listed: until then, counts are of a part. */
  isWhole: boolean
  /** The values to filter by, with how many of the found sessions have each; the most frequent. */
  facets: Partial<Record<QueryKey, [value: string, count: number][]>>
  /** What the found sessions did by day, the oldest first. */
  days: DayView[]
  /** The shared budgets of the store. */
  budgets: BudgetView[]
}

/** The sessions that were last written on a day. */
export interface DayView {
  /** `2026-11-26`, in UTC. */
  day: string
  sessions: number
  /** USD, as far as it is known. */
  cost: number
  /** How many failed, by reason. */
  failures: Record<string, number>
}

export interface SessionRow {
  id: string
  name: string | null
  /** `waiting`: for a person · `sleeping`: until a date */
  standing: (typeof sessionStandings)[number]
  /** State and reason of the latest run; null before the first run and for damaged sessions. */
  state: string | null
  reason: string | null
  /** When its run goes on, which sleeps. */
  wakeAt: number | null
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
  /** The process that holds the session; null when there is none. */
  holder: string | null
  /** Whether its run is attached to this studio, and streams live. */
  isAttached: boolean
  forkedFrom: { sessionId: string; seq: number } | null
  tags: Record<string, string>
  /** The agent that began its latest run, as `defineAgents` calls it. */
  agent: string | null
  /** The session whose call this sub-agent works for; null for every other session. */
  parent: string | null
  /** How many sub-agents' sessions lie below it. */
  children: number
  /** Why it cannot be read. */
  problem: string | null
}

/** One record of the log, and its effect on the chart. */
export interface RecordRow {
  seq: number
  /** Milliseconds since the epoch. */
  at: number
  type: 'opened' | 'start' | 'event' | 'snapshot'
  /** A short description: `answer: 2 calls`, `read_file ok`. */
  label: string
  /** Paths of states, dotted, the innermost ones that are active: `RUNNING.asking.requesting`. */
  from: string[]
  to: string[]
  /** Ids of the transitions taken, as in ChartView. */
  taken: string[]
  state: string
  /** When its run goes on, which sleeps; milliseconds since the epoch. */
  wakeAt?: number
  /** The run's step, from 1; 0 before the first. */
  step: number
  run: number
  tokens: number
  cost: number | null
  /** USD that this record alone paid for, as far as it has a price. */
  paid: number
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
  /** The work that it started: requests, batches, shields, sub-agents. */
  started: string[]
  /** The calls whose results it brought. */
  calls: SettledCall[]
}

export interface SettledCall {
  id: string
  name: string
  /** `ok`, `error`, `blocked`, `not_executed`, … */
  status: string
  /** Its tool changes nothing: it may repeat. */
  isReadOnly: boolean
}

/** A session in a sentence, and what it took as far as the rows do not tell it. */
export interface VerdictView {
  /** Of the latest run; null before the first. */
  state: string | null
  reason: string | null
  /** What stopped the run and the key that allows more, or what it waits for; empty before the first run. */
  text: string
  /** The first line of the answer of a run that has completed, as plain text; empty otherwise. */
  answer: string
  /** The record that decided it; 0 without records. */
  seq: number
  inputTokens: number
  cachedTokens: number
  /** USD, as far as prices are known. */
  cost: number
  isCostWhole: boolean
}

/** A bar of the timeline. */
export interface Bar {
  /** Unique in the session: a bar that is sent again replaces the earlier one. */
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
  /** The session of a sub-agent. */
  sessionId?: string
}

export interface SessionView {
  session: SessionRow
  /** Why it can be neither answered nor forked; null when it can. An attached run can always be answered. */
  readOnly: string | null
  /** Whether `rows`, `bars` and `gaps` begin at a snapshot, and the records before are still to be loaded. */
  isPart: boolean
  verdict: VerdictView
  /** The session whose call this sub-agent works for; null for every other session. */
  parent: string | null
  rows: RecordRow[]
  bars: Bar[]
  /** Times without a process, between records. */
  gaps: { from: number; to: number }[]
  /** Sessions forked from it. */
  forks: { sessionId: string; seq: number }[]
}

export interface EndView {
  view: SessionView
  /**
   * The moment after the last record; null without records. Of a part, its transcript has the last messages alone, and the usage
   * of sub-agents before `rows` is not counted.
   */
  moment: MomentView | null
}

export interface GuardView {
  name: string
  /** The count, and the threshold at which the guard acts; null for guards that do not count. */
  streak: number | null
  threshold: number | null
  evidence: string
  /** The next action (`nudge`, `block`, `halt`) as a phrase. */
  next: string
  isOn: boolean
}

export interface GaugeView {
  name: 'tokens' | 'output tokens' | 'cost' | 'steps' | 'time'
  /** Null: not known. */
  used: number | null
  /** Null: no limit. */
  limit: number | null
  /** The part that sub-agents used. */
  children: number
}

export interface PendingView {
  callId: string
  name: string
  needs: PendingCall['needs']
  /** JSON text. */
  arguments: string
  fingerprint: string
  messageId?: string
  /** JSON Schema of the arguments; null without the agent. */
  schema: object | null
  /** What the server of the tool asks a person. */
  elicitation?: Elicitation
}

/** The session after record `seq`. */
export interface MomentView {
  seq: number
  /** How many messages come before those of the transcript. */
  earlier: number
  transcript: ShownMessage[]
  /** Null: not known without the agent, or it has none. */
  instructions: InstructionsView | null
  /** The record, redacted. */
  record: unknown
  /** The machine's context, redacted. */
  context: unknown
  /** Paths in the context that this record changed: `usage.run.totalTokens`. */
  changed: string[]
  guards: GuardView[]
  budget: GaugeView[]
  pending: PendingView[]
  /** The possible actions; empty without an agent, or before the last record. */
  actions: Answer['type'][]
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
    /** Each begins with how many items it keeps of the list of the moment before; the others follow. */
    lists: number[][]
  }[]
}

/** The data in an exported page: JSON text in `<script type="application/json" id="statewright">`. */
export interface ExportedSession {
  chart: ChartView
  visits: VisitsView
  session: SessionView
  moments: PackedMoments
}

/** A session to share. */
export interface SharedView {
  /** The text of the file. */
  content: string
}

/** `page`: one HTML file. `card`: a picture, as SVG. `film`: an SVG that moves. */
export type ShareForm = 'page' | 'card' | 'film'

/** The call that an answer is for. */
export type CallTarget = Pick<PendingView, 'callId' | 'fingerprint' | 'messageId'>

export interface Done {
  sessionId: string
}

export type LiveMessage =
  | { type: 'session'; row: SessionRow }
  | { type: 'gone'; sessionId: string }
  /** More of the store was listed or read: a search may find more. */
  | { type: 'list'; known: number; unread: number }
  /** New rows, and new or changed bars. `reset`: the session was replaced, drop all others. */
  | { type: 'rows'; sessionId: string; rows: RecordRow[]; bars: Bar[]; verdict: VerdictView; reset?: true }
  /** Streamed text of an answer. `reset`: it replaces the text before. */
  | { type: 'text'; sessionId: string; stepId: string; text: string; reset: boolean }
  /** Why the store cannot be read; null when it can be read again. */
  | { type: 'store'; problem: string | null }

export interface ChartView {
  id: string
  description: string
  states: ChartState[]
  transitions: ChartTransition[]
  /** SVG pictures whose parts have `data-state` and `data-transition`: the overview, then one sheet for each state. */
  sheets: { id: string; title: string; svg: string }[]
  /** Stately's editor, where runs are shown in it: its address, and the machine as it takes it. */
  editor?: { url: string; machine: object; withContext: boolean }
}

export interface ChartState {
  /** `RUNNING.asking`. */
  path: string
  description: string
  type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
  /** Whether generated tests enter it; null: not known. */
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

/** How stored sessions used the chart. */
export interface VisitsView {
  /** How many sessions were counted, the last written. */
  sessions: number
  /** How often a transition was taken, or a state entered, by its id or path; absent: never. */
  counts: Record<string, number>
}

/** Two sessions beside each other: what `GET /api/compare` answers. */
export interface CompareView {
  a: SessionView
  b: SessionView
  /** The number of common messages and records at the beginning. */
  commonRecords: number
  commonMessages: number
  /** What the fork was told instead; null where no part of it was changed. */
  change: CompareChange | null
  steps: { step: number; a: CompareStep | null; b: CompareStep | null; isSame: boolean }[]
}

export interface CompareChange {
  kind: 'message' | 'arguments' | 'result' | 'instructions' | 'decision'
  /** The tool of the call. */
  name: string | null
  a: string
  b: string
}

export interface CompareStep {
  seq: number
  /** What users said since the answer before. */
  said: string
  text: string
  calls: { name: string; arguments: string; result: string | null }[]
  tokens: number
  cost: number | null
  ms: number
}

// What a page shows of a transcript.

/** A picture, sound or document. */
export interface ShownMedia {
  /** What it is, in words. */
  words: string
  /** A `data:` address of a picture that the page may show; null where it shows the words. */
  picture: string | null
}

/** The formats that are nothing but points: an SVG is a document. */
const picture = /^data:image\/(?:png|jpeg|gif|webp);base64,[\w+/=]+$/

/** Whether the page may show what this address holds as a picture. */
export const isPicture = (address: string): boolean => picture.test(address)

export interface Decision {
  /** The record that has it. */
  seq: number
  kind: 'approved' | 'rejected'
  /** The arguments that were given instead, as JSON, or why it was rejected; empty: neither. */
  words: string
}

/** What the model was told by the agent's author. */
export interface InstructionsView {
  text: string
  /** `agent`: as the agent has them now · `step`: those of this step alone · `fork`: those that this fork was given */
  from: 'agent' | 'step' | 'fork'
  /** The record at which a fork with other instructions starts: the first of the run. Null: not known. */
  forkAt: number | null
}

export interface ShownMessage {
  role: Message['role']
  /** The agent that a handoff made it of, on what agents say. Absent: the session's first agent. */
  speaker?: string
  id: string
  at: number
  /** The record at which a fork takes an edit of the message or of the arguments of its calls. Null: not known. */
  forkAt: number | null
  text: string
  media: ShownMedia[]
  reasoning: string
  calls: {
    id: string
    name: string
    arguments: string
    result: string | null
    /** The record at which a fork takes another result. Null: there is none yet. */
    forkAt: number | null
    media: ShownMedia[]
    status: string | null
    durationMs: number | null
    /** What a person decided about it; null: nothing. */
    decision: Decision | null
  }[]
  /** What is special about the message: `partial`, `internal`, `withheld`, `edited`, `steering`, … */
  marks: string[]
}
