import { createActor } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import type { AgentMachineEvent } from '../../machines/agent/context.js'
import { addUsage, noUsage, type Usage } from '../../machines/agent/usage.js'
import { isRecord } from '../../guards/lib/stored.js'
import { describeError } from '../core/base/errors.js'
import { stretchMs, yieldToEventLoop } from '../core/base/platform.js'
import { type Macrostep, observeMachine } from '../core/chart/observe-machine.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { LogRecord } from '../core/sessions/store/store.js'
import { damagedLogError, openRecord, type RecordContent } from '../core/sessions/log/log-record.js'
import {
  applyRecord,
  applyOpenedRecord,
  createFoldedSession,
  findSessionFault,
  type FoldedRun,
  type RunReducer,
  type FoldedSession,
} from '../core/sessions/fold-session.js'
import { type CostSum, sumCosts } from './costs.js'
import { createRow, type RecordRow, TimelineBars } from './record-rows.js'
import { recordGrants } from './moment-view.js'
import { forkableStates, isFailed } from './session-query.js'
import { type CallNotes, type Decision, toShownText } from './shown-values.js'
import {
  findResponse,
  formatGuardName,
  getOwnUsage,
  type Inherited,
  type Moment,
  noInheritance,
  type SessionStep,
  updateInherited,
} from './session-step.js'

/** In records. Any moment can be replayed quickly from a saved state. */
const momentInterval = 64

/** An unreadable record ends the fold. It may start at a snapshot, to show the end of a long log first. */
export class SessionFold {
  readonly rows: RecordRow[] = []
  readonly base: number
  readonly #id: string
  readonly #records: OpenedRecord[] = []
  /** The last requested moment, because the next request is usually one record away. */
  #last: { seq: number; moment: Moment } | undefined
  readonly models = new Set<string>()
  readonly guards = new Set<string>()
  /** Answers by run, as `limits.maxSteps` counts them. */
  readonly #steps = new Map<number, number>()
  readonly notes: CallNotes = {
    edit: undefined,
    durations: new Map(),
    decisions: new Map(),
    grants: new Map(),
    forkPoints: new Map(),
  }
  readonly #moments: Moment[] = []
  readonly timeline = new TimelineBars()
  #received = { count: 0, check: '' }
  now: Moment
  problem: StoreError | null = null
  origin: Origin

  readonly #beganAt: number | undefined

  /** `first` contains the records from a snapshot on. `opening` contains the first two records of the log. */
  constructor(id: string, first: readonly LogRecord[] = [], opening: readonly LogRecord[] = []) {
    this.#id = id
    const { origin, inherited } = this.#findOpening(opening)
    // The run at the snapshot may be later than the one that a fork copied.
    const atStart = { ...inherited, run: noUsage, steps: 0 }
    this.now = {
      session: createFoldedSession(first),
      children: noUsage,
      inherited: origin ? atStart : noInheritance,
    }
    this.base = this.now.session.head
    this.origin = origin
    this.#beganAt = opening[0]?.at
    this.notes.edit = origin?.edit
    this.#moments.push(this.now)
  }

  /** A damaged opening is the problem of this log. If it were thrown, it would end the reading of the other logs. */
  #findOpening(opening: readonly LogRecord[]): ReturnType<typeof readOpening> {
    try {
      return readOpening(opening, this.#id)
    } catch (error) {
      this.problem = error as StoreError
      return { origin: undefined, inherited: noInheritance }
    }
  }

  get head(): number {
    return this.base + this.#records.length
  }

  /** The checksum of a record, which reveals whether the log was replaced. */
  getCheck(seq = this.head): string {
    return this.#findRecord(seq)?.record.check ?? ''
  }

  /** Steps of all runs, without the steps that a fork inherited. */
  get steps(): number {
    return [...this.#steps.values()].reduce((sum, steps) => sum + steps, 0)
  }

  /** Not whole if some usage has no price. */
  get cost(): CostSum {
    const { cost } = getOwnUsage(this.now)
    if (cost !== null) return { usd: cost, isWhole: true }
    const paid = sumCosts(this.rows.map((row) => row.paid))
    // A fork may have inherited the usage without a price.
    return { ...paid, isWhole: paid.isWhole && this.base === 0 && this.origin !== undefined }
  }

  /** Milliseconds from the first record to the last. */
  get duration(): number {
    return Math.max(0, (this.rows.at(-1)?.at ?? 0) - (this.#beganAt ?? this.rows[0]?.at ?? 0))
  }

  get failedCalls(): number {
    return this.rows.reduce((sum, { calls }) => sum + calls.filter(isFailed).length, 0)
  }

  /** The last record may be unreadable. */
  hasRead(records: readonly LogRecord[]): boolean {
    return records.length === this.#received.count && records.at(-1)?.check === this.#received.check
  }

  /** Stops if `rest`, which runs between batches, returns false. Calls must not overlap. */
  async addRecords(records: readonly LogRecord[], rest = yieldToOthers): Promise<boolean> {
    const last = records.at(-1)
    if (last) this.#received = { count: this.#received.count + records.length, check: last.check }
    let until = performance.now() + stretchMs
    for (const record of records) {
      if (this.problem) return true
      if (performance.now() > until) {
        if (!(await rest())) return false
        until = performance.now() + stretchMs
      }
      this.#addRecord(record)
    }
    return true
  }

  #addRecord(record: LogRecord): void {
    try {
      const step = this.#applyRecord(this.now, record)
      const { entry, after } = step
      const row = createRow(step)
      this.timeline.addStep(step)
      this.#recordCall(step)
      recordGrants(this.notes.grants, step)
      this.#recordNames(step)
      this.#recordForkPoints(step, row)
      if (entry.type === 'opened') {
        this.origin = entry.forkedFrom
        this.notes.edit = this.origin?.edit
      }
      const { session, inherited } = after
      if (session.run) this.#steps.set(session.runs, session.run.context.steps - inherited.steps)
      this.now = after
      this.rows.push(row)
      this.#records.push({ record, entry })
      if (this.#records.length % momentInterval === 0) this.#moments.push(after)
    } catch (error) {
      const why = `record ${record.seq} has invalid content (${describeError(error)})`
      this.problem = error instanceof StoreError ? error : damagedLogError(this.#id, this.head, why, error)
    }
  }

  #recordCall({ record: { seq }, event, was }: SessionStep): void {
    if (event?.type !== 'TOOL_RESULT' && event?.type !== 'APPROVE' && event?.type !== 'REJECT') return
    const { calls = [], batchNumber = 0 } = was ?? {}
    const place = calls.findIndex(({ id }) => id === event.callId)
    if (place < 0) return
    const result = `m${batchNumber + 1 + place}`
    const { durations, decisions } = this.notes
    if (event.type === 'TOOL_RESULT') durations.set(result, event.result.durationMs)
    else decisions.set(result, toDecision(seq, event, decisions.get(result)))
  }

  #recordNames({ event, now }: SessionStep): void {
    if (now?.verdict) this.guards.add(formatGuardName(now.verdict))
    const model = findResponse(event)?.model ?? null
    if (model !== null) this.models.add(model)
  }

  /**
   * An edit of a result applies where its batch is complete, so that no other call of the batch runs again, and not
   * where the result ended the run, because no model would read another one.
   */
  #recordForkPoints({ before, after, now }: SessionStep, { seq, run, state, calls }: RecordRow): void {
    // In a partial log, it is unknown where earlier messages first appeared.
    if (this.base > 0) return
    const { forkPoints: points } = this.notes
    const setFirst = (key: string): void => void (points.has(key) || points.set(key, seq))
    const canRun = forkableStates.has(state)
    if (canRun) setFirst(`run ${run}`)
    const setResult = (key: string): void =>
      void (canRun && (calls.length > 0 ? points.set(key, seq) : setFirst(key)))
    const { messages } = getConversation(after)
    const known = getConversation(before).messages
    if (messages !== known) {
      // New messages are at the end, but a compaction puts its summary at the start.
      const lastKnown = known.at(-1)?.id
      for (const { id, role } of messages.slice(messages.findLastIndex(({ id }) => id === lastKnown) + 1))
        if (role === 'tool') setResult(id)
        else setFirst(id)
      if (messages[0]) setFirst(messages[0].id)
    }
    const { calls: batch = [], batchNumber = 0 } = now ?? {}
    for (const [place, { result, unscreenedResult }] of batch.entries())
      if (result && !unscreenedResult) setResult(`m${batchNumber + 1 + place}`)
  }

  findStep(seq: number): SessionStep | null {
    if (this.#findRecord(seq) === undefined) return null
    const nearest = Math.floor((seq - this.base - 1) / momentInterval)
    let from = this.base + nearest * momentInterval
    let moment = this.#moments[nearest] ?? this.now
    if (this.#last && this.#last.seq >= from && this.#last.seq < seq) ({ seq: from, moment } = this.#last)
    const replay = (before: Moment, at: number): SessionStep => {
      const { record, entry } = this.#findRecord(at) as OpenedRecord
      return this.#applyRecord(before, record, entry)
    }
    for (let next = from + 1; next < seq; next += 1) moment = replay(moment, next).after
    const step = replay(moment, seq)
    this.#last = { seq, moment: step.after }
    return step
  }

  #findRecord(seq: number): OpenedRecord | undefined {
    return this.#records[seq - this.base - 1]
  }

  /** `opened` is the content of the record, if it was read before. */
  #applyRecord(before: Moment, record: LogRecord, opened?: RecordContent): SessionStep {
    const session: FoldedSession = { ...before.session }
    const transitionIds: string[] = []
    const folding = createReducer(transitionIds)
    if (opened) applyOpenedRecord(session, record, opened, this.#id, folding)
    const entry = opened ?? applyChecked(session, record, this.#id, folding)
    const event = entry.type === 'event' ? entry.event : null
    const after: Moment = {
      session,
      children: entry.type === 'start' ? noUsage : updateChildUsage(before.children, event),
      inherited: updateInherited(before.inherited, entry, session),
    }
    // A snapshot does not change the state, even as the first record.
    const from = this.base > 0 && record.seq === this.base + 1 ? after : before
    const was = from.session.run?.context ?? null
    const now = session.run?.context ?? null
    return { record, entry, event, before: from, after, was, now, transitionIds }
  }
}

const getConversation = ({ session: { run, state } }: Moment) => run?.context ?? state

async function yieldToOthers(): Promise<boolean> {
  await yieldToEventLoop()
  return true
}

export type Origin = Extract<RecordContent, { type: 'opened' }>['forkedFrom']

/**
 * Reads a fork's origin and its inherited totals from the first two records of its log.
 * @throws {StoreError} `corrupt_log`, `newer_log`, …
 */
export function readOpening(
  [first, second]: readonly LogRecord[],
  id: string,
): { origin: Origin; inherited: Inherited } {
  const opened = first && openRecord(first, 0, id)
  const origin = opened?.type === 'opened' ? opened.forkedFrom : undefined
  if (!first || !origin) return { origin, inherited: noInheritance }
  const session = createFoldedSession([])
  const inherited = (second ? [first, second] : [first]).reduce(
    (before, record) => updateInherited(before, applyChecked(session, record, id), session),
    noInheritance,
  )
  return { origin, inherited }
}

/** Another program may have written a record that does not fit its type, or an impossible state. */
function applyChecked(
  session: FoldedSession,
  record: LogRecord,
  id: string,
  folding?: RunReducer,
): RecordContent {
  const entry = applyRecord(session, record, id, folding)
  const fault = findSessionFault(session) ?? findOriginFault(entry)
  if (fault === null) return entry
  const what = `record ${record.seq} results in an impossible state (${fault})`
  throw damagedLogError(id, record.seq - 1, what)
}

function findOriginFault(entry: RecordContent): string | null {
  if (entry.type !== 'opened' || entry.forkedFrom === undefined) return null
  const { sessionId, seq, edit = {} }: Record<string, unknown> = { ...entry.forkedFrom }
  const isOrigin = typeof sessionId === 'string' && Number.isSafeInteger(seq) && isRecord(edit)
  return isOrigin ? null : 'its origin is not a record of a session'
}

interface OpenedRecord {
  record: LogRecord
  entry: RecordContent
}

/** Observes transitions. It has no session state. */
const observedMachine = observeMachine(agentMachine)

/** Adds the ids of the transitions that a record takes to `taken`. */
function createReducer(taken: string[]): RunReducer {
  const take = ({ snapshot, transitions }: Macrostep): FoldedRun => {
    taken.push(...transitions.map(({ declared }) => declared.id))
    return snapshot as unknown as FoldedRun
  }
  return {
    start: (input) => take(observedMachine.start(input)),
    step: (run, event) => take(observedMachine.step(run, event)),
    restore: (state) =>
      createActor(observedMachine.machine, {
        snapshot: state as never,
        input: undefined,
      }).getSnapshot() as FoldedRun,
  }
}

function toDecision(
  seq: number,
  event: Extract<AgentMachineEvent, { type: 'APPROVE' | 'REJECT' }>,
  earlier: Decision | undefined,
): Decision {
  const kind = event.type === 'APPROVE' ? 'approved' : 'rejected'
  const words = event.type === 'APPROVE' ? (event.arguments ?? '') : event.why
  const name = event.by ? [toShownText(event.by.id, 200)] : []
  // Several people may have to approve. New arguments void their earlier approvals.
  const isVote = event.type === 'APPROVE' && event.arguments === undefined && earlier?.kind === 'approved'
  return {
    seq,
    kind,
    words: event.withheld ? '' : toShownText(words),
    by: isVote ? [...new Set([...earlier.by, ...name])] : name,
  }
}

function updateChildUsage(children: Usage, event: AgentMachineEvent | null): Usage {
  const isChild = event?.type === 'TOOL_RESULT' || event?.type === 'CHILD_USAGE'
  return isChild && event.usage ? addUsage(children, event.usage) : children
}
