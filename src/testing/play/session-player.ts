import type { AgentContext, Features } from '../../../machines/agent/context.js'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import type { RecordContent } from '../../core/sessions/log/log-record.js'
import {
  applyOpenedRecord,
  createFoldedSession,
  findSessionFault,
  pureReducer,
  type FoldedSession,
} from '../../core/sessions/fold-session.js'
import {
  CurrentAgent,
  type FoundDifference,
  type RecordingRow,
  type PlayScene,
  LiveTools,
} from './current-agent.js'
import { digestMessage, getPlace, listLeafChanges } from './record-session.js'
import { ReplayError, type SessionDifference } from './recording.js'
import { describeEntry, formatTextDifference, formatValue } from './compare-agents.js'

const featureWords: Record<keyof Features, string> = {
  inputShields: 'input shields',
  outputShields: 'output shields',
  callShields: 'call shields',
  resultShields: 'result shields',
  retrieval: 'a memory',
  fitting: 'context trimming',
  userGuards: 'custom guards',
  structuredOutput: 'an output schema',
  stopWhen: 'a stopWhen',
  prepareStep: 'a prepareStep or dynamic instructions',
}

/** Lists changes of the agent that may explain a different state. */
function explainDifference({ run: one }: FoldedSession, { run: other }: FoldedSession): string[] {
  if (!one || !other) return []
  const [then, now] = [one.context, other.context]
  const settings = listLeafChanges(then.config, now.config).map(
    ({ path, before, after }) => `${path} was ${formatValue(before)} and is now ${formatValue(after)}`,
  )
  const features = listLeafChanges(then.features, now.features).map(({ path, after }) => {
    const words = featureWords[path as keyof Features] ?? path
    return after === true ? `it now has ${words}` : `it no longer has ${words}`
  })
  const tools = Object.keys(then.tools)
    .filter((name) => now.tools[name] !== undefined)
    .flatMap((name) =>
      listLeafChanges(then.tools[name], now.tools[name]).map(
        ({ path, after }) => `tool '${name}' ${after === true ? 'is' : 'is not'} ${path} now`,
      ),
    )
  return [...settings, ...features, ...tools]
}

/**
 * Runs the recorded session and the same session with the current agent side by side on the pure machine. Both
 * receive the same events unless the current agent would act differently.
 */
export class SessionPlayer {
  readonly differences: Omit<SessionDifference, 'path'>[] = []
  readonly #scene: PlayScene
  readonly #then: FoldedSession
  readonly #now: FoldedSession
  readonly #live: LiveTools | null
  readonly #agent: CurrentAgent
  #calls = 0
  #isOver = false

  constructor(scene: PlayScene) {
    const { recording, parts, isLive, appContext } = scene
    this.#scene = scene
    const first = [{ ...toRecord(recording.records[0]), check: '' }]
    this.#then = createFoldedSession(first)
    this.#now = createFoldedSession(first)
    this.#live = isLive ? new LiveTools(parts, appContext) : null
    this.#agent = new CurrentAgent(scene, this.#live)
  }

  get standing(): FoldedSession {
    return this.#now
  }

  get notes(): ReadonlySet<string> {
    return this.#agent.notes
  }

  get calls(): number {
    return this.#calls
  }

  async playAll(): Promise<void> {
    try {
      for (const row of this.#scene.recording.records) {
        // oxlint-disable-next-line no-await-in-loop -- one record after the other
        await this.#playRow(row)
        if (this.#isOver) return
      }
      this.#compareEnd()
    } finally {
      this.#live?.stopAll()
    }
  }

  async #playRow(row: RecordingRow): Promise<void> {
    const { seq: _seq, at: _at, hidden, reached, ...entry } = row
    // The snapshot contains nothing new.
    if (entry.type === 'snapshot' && this.#now.run) return
    if (hidden) this.#agent.notes.add(`record ${row.seq}, where shields withheld or changed content`)
    const found: FoundDifference[] = []
    const now = await this.#agent
      .adaptEntry(entry as RecordContent, row, this.#now.run?.context, found)
      .catch((error: unknown) => {
        throw error instanceof StatewrightError ? error : this.#damagedError(row, error)
      })
    this.#applyEntry(this.#then, row, entry as RecordContent)
    this.#applyEntry(this.#now, row, now)
    for (const one of found) this.#addDifference(row, one)
    this.#comparePlaces(row, entry as RecordContent, reached, found)
    if (this.#isOver) return
    if (entry.type === 'event' && /^TOOL_(RESULT|OUTPUT)$/.test(entry.event.type)) this.#calls += 1
    const { run } = this.#now
    if (run && this.#live) this.#live.startCalls(run.context)
    this.#compareMessages(row)
  }

  #applyEntry(standing: FoldedSession, row: RecordingRow, entry: RecordContent): void {
    const { session } = this.#scene.recording
    try {
      applyOpenedRecord(standing, { ...toRecord(row), check: '' }, entry, session, pureReducer)
    } catch (error) {
      throw this.#damagedError(row, error)
    }
  }

  #damagedError({ seq }: RecordingRow, cause: unknown): ReplayError {
    const { session } = this.#scene.recording
    const text = `The recording of session '${session}' cannot be read past record ${seq}: ${describeError(cause)}`
    return new ReplayError('damaged_recording', text, session, { cause })
  }

  #comparePlaces(
    row: RecordingRow,
    entry: RecordContent,
    reached: string | null | undefined,
    found: FoundDifference[],
  ): void {
    const then = getPlace(this.#then)
    const now = getPlace(this.#now)
    const after = describeEntry(
      entry,
      (id) => this.#then.run?.context.calls.find((call) => call.id === id)?.name,
    )
    if (reached !== undefined && reached !== then) {
      const [recorded, present] = [reached ?? 'nowhere', then ?? 'nowhere']
      const message =
        `After ${after} (record ${row.seq}) the run was in ${recorded}; this version of Statewright leads to ` +
        `${present}.`
      this.#addDifference(row, { by: 'chart', subject: null, recorded, now: present, message })
      this.#isOver = true
    } else if (then !== now) {
      const [recorded, present] = [then ?? 'nowhere', now ?? 'nowhere']
      const reasons = explainDifference(this.#then, this.#now)
      const why =
        reasons.length > 0
          ? `\nChanges of the agent:\n${reasons.map((line) => `  ${line}`).join('\n')}`
          : found.length > 0
            ? ' This follows from the difference above.'
            : ''
      const message = `After ${after} (record ${row.seq}) the run was in ${recorded} and is now in ${present}.${why}`
      this.#addDifference(row, { by: 'state', subject: null, recorded, now: present, message })
      this.#isOver = true
    }
  }

  #compareMessages(row: RecordingRow): void {
    const [then, now] = [this.#then.run?.context, this.#now.run?.context]
    if (!then || !now || !comparableStates.test(getPlace(this.#now) ?? '')) return
    for (const [i, message] of now.messages.entries()) {
      const other = then.messages[i]
      if (other === message || (other && digestMessage(other) === digestMessage(message))) continue
      const key = message.role === 'tool' ? message.tool_call_id : message.id
      if (this.#agent.reported.has(key)) continue
      this.#agent.reported.add(key)
      const [recorded, present] = [other, message].map((one) =>
        one ? JSON.stringify(getContent(one)) : '(none)',
      ) as [string, string]
      const text = `Message ${message.id} (${message.role}) is different:\n${formatTextDifference(recorded, present)}`
      this.#addDifference(row, { by: 'message', subject: message.id, recorded, now: present, message: text })
    }
    const [before, after] = [then.nudges.join('\n\n'), now.nudges.join('\n\n')]
    if (before === after) return
    const text = `The guards' message to the model with this request is different:\n${formatTextDifference(before, after)}`
    this.#addDifference(row, { by: 'guidance', subject: null, recorded: before, now: after, message: text })
  }

  #compareEnd(): void {
    const { recording } = this.#scene
    const fault = findSessionFault(this.#then)
    if (fault !== null) {
      const text = `The recording of session '${recording.session}' is inconsistent (${fault}). Record it again.`
      throw new ReplayError('damaged_recording', text, recording.session)
    }
    const last = recording.records.at(-1)
    if (recording.messages === null || !last) return
    const messages = this.#then.run?.context.messages ?? this.#then.state.messages
    const at = recording.messages.findIndex(
      (digest, i) => messages[i] === undefined || digestMessage(messages[i]) !== digest,
    )
    if (at < 0 && messages.length === recording.messages.length) return
    const message = messages[at < 0 ? recording.messages.length : at]
    const now = message ? JSON.stringify(getContent(message)) : '(none)'
    const text =
      `Message m${(at < 0 ? recording.messages.length : at) + 1} is otherwise with this version of Statewright; now it ` +
      `is:\n  ${now}`
    this.#addDifference(last, {
      by: 'chart',
      subject: message?.id ?? null,
      recorded: '(a fingerprint)',
      now,
      message: text,
    })
  }

  #addDifference({ seq }: RecordingRow, found: FoundDifference): void {
    const { run, runs } = this.#now
    this.differences.push({ ...found, run: runs || null, step: run?.context.steps || null, record: seq })
  }
}

/** Before a request or at rest. */
const comparableStates = /asking\.(requesting|concluding)$|^WAITING_FOR_INPUT|^[A-Z_]+( \(done\))?$/

function toRecord(row: RecordingRow | undefined): {
  seq: number
  at: number
  type: RecordingRow['type']
  data: string
} {
  return { seq: row?.seq ?? 1, at: row?.at ?? 0, type: row?.type ?? 'opened', data: '' }
}

function getContent({ id: _id, createdAt: _createdAt, ...rest }: AgentContext['messages'][number]): object {
  return rest
}
