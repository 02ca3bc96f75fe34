import type { AgentEvent } from '../../machines/agent/announcements.js'
import { isWorkState } from '../../machines/agent/run-result.js'
import type { MessageTarget } from '../core/run/apply-message.js'
import type { Run } from '../core/run/run.js'
import type { SentBy } from '../core/sessions/principal.js'
import type { EmbeddedRun } from './embedded-actors.js'
import type { LiveMessage } from './protocol.js'
import { toShownText } from './shown-values.js'

type Text = Extract<LiveMessage, { type: 'text' }>

export type AttachableRun = MessageTarget &
  Pick<Run, 'sessionId' | 'state' | 'started' | 'events$'> & {
    revoke(target: { grant: string }, options?: SentBy): void | Promise<void>
  }

export type AttachedRun = AttachableRun | EmbeddedRun

export class AttachedRuns {
  readonly #runs = new Map<string, { run: AttachedRun; isOurs: boolean }>()
  /** The answers that are being streamed, by session. */
  readonly #texts = new Map<string, { stepId: string; text: string; shown: string }>()
  onText: (text: Text) => void = () => undefined
  onChange: () => void = () => undefined

  /** Undefined for a run that the studio resumed and that rests, because another process may have resumed it since. */
  get(sessionId: string): AttachedRun | undefined {
    const { run, isOurs } = this.#runs.get(sessionId) ?? {}
    return run && isOurs && !isWorkState(run.state) ? undefined : run
  }

  get isEmpty(): boolean {
    return this.#runs.size === 0
  }

  has(sessionId: string): boolean {
    return this.#runs.has(sessionId)
  }

  findText(sessionId: string): Text | null {
    const text = this.#texts.get(sessionId)
    return text ? { type: 'text', sessionId, stepId: text.stepId, text: text.shown, reset: true } : null
  }

  /** `isOurs` means that the studio resumed the run itself and detaches when it settles. */
  attach(run: AttachedRun, { isOurs = false } = {}): void {
    const { sessionId } = run
    if (this.#runs.get(sessionId)?.run === run) return
    this.#runs.set(sessionId, { run, isOurs })
    let hasWorked = false
    const detach = (): void => {
      if (this.#runs.get(sessionId)?.run === run) {
        this.#runs.delete(sessionId)
        this.#texts.delete(sessionId)
      }
      this.onChange()
    }
    run.events$.subscribe({
      next: (event: AgentEvent) => {
        if (event.type === 'stream_chunk') this.#addChunk(sessionId, event)
        // Deltas of a tool call are not in the log, so there is nothing new for the page to read.
        else if (event.type !== 'tool_call_delta') this.onChange()
        if (event.type !== 'state_changed') return
        if (isWorkState(event.to)) hasWorked = true
        else if (isOurs && hasWorked) detach()
      },
      error: detach,
      complete: detach,
    })
    this.onChange()
  }

  #addChunk(sessionId: string, chunk: Extract<AgentEvent, { type: 'stream_chunk' }>): void {
    const { stepId, finished } = chunk
    const before = this.#texts.get(sessionId)
    const isNew = before?.stepId !== stepId || chunk.reset === true
    const earlier = isNew ? { text: '', shown: '' } : before
    const text = earlier.text + chunk.text
    // The last word is held back until it is complete, because it may be part of a secret.
    const end = finished ? text.length : text.search(/\s\S*$/) + 1
    const shown = toShownText(text.slice(0, end))
    if (finished) this.#texts.delete(sessionId)
    else this.#texts.set(sessionId, { stepId, text, shown })
    if (shown === earlier.shown) return
    const goesOn = shown.startsWith(earlier.shown)
    const added = goesOn ? shown.slice(earlier.shown.length) : shown
    this.onText({ type: 'text', sessionId, stepId, text: added, reset: isNew || !goesOn })
  }
}
