import type { BudgetRow } from '../fleet/create-budget.js'
import type { ChartView } from './chart-view.js'
import type { MomentView } from './moment-view.js'
import type { Bar, RecordRow } from './record-rows.js'
import type { SavedView } from './requests.js'
import type { FoundSessions } from './session-catalogue.js'
import type { SessionRow } from './session-library.js'
import type { VerdictView } from './verdict.js'
export type { ChartState, ChartTransition, ChartView } from './chart-view.js'
export type { GaugeView, GrantView, GuardView, MomentView, PendingView } from './moment-view.js'
export type { Bar, RecordRow, SettledCall } from './record-rows.js'
export type { Answer, ForkRequest, SavedView, TextEdit } from './requests.js'
export type { DayView } from './session-catalogue.js'
export type { SessionRow } from './session-library.js'
export type { InstructionsView } from './session-step.js'
export type { Decision, ShownMedia, ShownMessage } from './shown-values.js'

// The protocol between the page and its server. It is JSON without secrets or unscreened content. routes.ts has the
// addresses.

export interface Refusal {
  error: { code: string; message: string; key?: string }
}

export interface SessionsView extends FoundSessions {
  store: string
  /** Why actions are not possible. Null if they are. */
  readOnly: string | null
  budgets: BudgetView[]
  views: SavedView[]
}

/** `resetsAt` is null for a budget that never resets. */
export type BudgetView = Pick<BudgetRow, 'id' | 'resetsAt'> &
  Record<'spent' | 'reserved' | 'limit', number> & { unit: 'usd' | 'tokens' }

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

export interface VisitsView {
  /** Number of sessions counted. Only the latest are counted. */
  sessions: number
  /** How often a transition was taken or a state entered. Absent if never. */
  counts: Record<string, number>
}

export interface CompareChange {
  kind: 'message' | 'arguments' | 'result' | 'instructions' | 'decision'
  name: string | null
  a: string
  b: string
}
