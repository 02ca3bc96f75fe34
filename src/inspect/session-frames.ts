import type { AgentContext } from '../../machines/agent/context.js'
import type { RecordContent } from '../core/sessions/log/record-content.js'
import { apply, before, type FoldedRun, type Standing } from '../core/sessions/standing.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { redacted } from './redact.js'
import type { StatelyFrame } from './viewer.js'

/** A stored session, one snapshot a record: what was read stays read, and what is written later comes next. */
export class SessionFrames {
  readonly #id: string
  readonly #standing: Standing = before([])
  readonly #show: (run: FoldedRun, entry: RecordContent) => Pick<StatelyFrame, 'snapshot' | 'event'>

  /** `withContext`: all of the context and of the events, texts cut and secrets scrubbed, and not the few numbers alone. */
  constructor(id: string, withContext: boolean) {
    this.#id = id
    this.#show = withContext ? wholeFrame() : smallFrame
  }

  /**
   * Those of the records that have not been read yet. A record before the first run has none.
   * @throws {StoreError} `corrupt_log`, `newer_log`, `unknown_state`, at the record that cannot be read: those before it were
   * given one by one.
   */
  async *next(store: SessionStore): AsyncGenerator<StatelyFrame> {
    for (const record of await store.read(this.#id, { from: this.#standing.head + 1 })) {
      const entry = apply(this.#standing, record, this.#id)
      const { run } = this.#standing
      if (run) yield { seq: record.seq, at: record.at, ...this.#show(run, entry) }
    }
  }
}

function eventOf(entry: RecordContent): { type: string } {
  if (entry.type === 'event') return entry.event
  return { type: entry.type === 'start' ? 'xstate.init' : entry.type }
}

/** No text of anybody: not what was said, called or returned. */
function smallFrame(run: FoldedRun, entry: RecordContent): Pick<StatelyFrame, 'snapshot' | 'event'> {
  const { state, reason, steps, usage } = run.context
  const { totalTokens: tokens, cost } = usage.run
  const context = { state, reason, steps, tokens, cost }
  return { snapshot: { value: run.value, status: run.status, context }, event: { type: eventOf(entry).type } }
}

/** As the inspector shows a run: what shields have not cleared is withheld. */
function wholeFrame(): (run: FoldedRun, entry: RecordContent) => Pick<StatelyFrame, 'snapshot' | 'event'> {
  const { serialize } = redacted()
  return (run, entry) => {
    const { value, status, context } = run
    const told = { rootId: '', sessionId: '', event: eventOf(entry), snapshot: { value, status, context } }
    const { event, snapshot } = serialize<{
      event: { type: string }
      snapshot: { value: unknown; status: string; context: AgentContext }
    }>(told)
    return { event, snapshot }
  }
}
