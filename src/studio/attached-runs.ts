import type { AgentEvent } from '../../machines/agent/announcements.js'
import { isWorkState } from '../../machines/agent/run-result.js'
import type { MessageTarget } from '../core/run/apply-message.js'
import type { Run } from '../core/run/run.js'
import type { SentBy } from '../core/sessions/principal.js'
import type { LiveMessage } from './protocol.js'
import { toShownText } from './shown-values.js'

type Text = Extract<LiveMessage, { type: 'text' }>

export type AttachableRun = MessageTarget &
  Pick<Run, 'sessionId' | 'state' | 'started' | 'events$'> & {
    revoke(target: { grant: string }, options?: SentBy): void | Promise<void>
  }

export class AttachedRuns {
  readonly #runs = new Map<string, { run: AttachableRun; isOurs: boolean }>()
  readonly #texts = new Map<string, StreamedAnswer>()
  readonly #onText: (text: Text) => void
  readonly #onChange: (sessionId: string) => void

  constructor(onText: (text: Text) => void, onChange: (sessionId: string) => void) {
    this.#onText = onText
    this.#onChange = onChange
  }

  /** Undefined for a run that the studio resumed and that rests, because another process may have resumed it since. */
  get(sessionId: string): AttachableRun | undefined {
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
    return this.#texts.get(sessionId)?.whole ?? null
  }

  /** `isOurs` means that the studio resumed the run itself and detaches when it settles. */
  attach(run: AttachableRun, { isOurs = false } = {}): void {
    const { sessionId } = run
    if (this.#runs.get(sessionId)?.run === run) return
    this.#runs.set(sessionId, { run, isOurs })
    let hasWorked = false
    const detach = (): void => {
      if (this.#runs.get(sessionId)?.run === run) {
        this.#runs.delete(sessionId)
        this.#texts.delete(sessionId)
      }
      this.#onChange(sessionId)
    }
    run.events$.subscribe({
      next: (event: AgentEvent) => {
        if (event.type === 'stream_chunk') this.#addChunk(sessionId, event)
        // Deltas of a tool call are not in the log, so there is nothing new for the page to read.
        else if (event.type !== 'tool_call_delta') this.#onChange(sessionId)
        if (event.type !== 'state_changed') return
        if (isWorkState(event.to)) hasWorked = true
        else if (isOurs && hasWorked) detach()
      },
      error: detach,
      complete: detach,
    })
    this.#onChange(sessionId)
  }

  #addChunk(sessionId: string, chunk: Extract<AgentEvent, { type: 'stream_chunk' }>): void {
    const { stepId, text, reset, finished } = chunk
    const before = this.#texts.get(sessionId)
    const isNew = before?.stepId !== stepId || reset === true
    const answering = isNew ? new StreamedAnswer(sessionId, stepId) : before
    this.#texts.set(sessionId, answering)
    const news = answering.addText(text, finished)
    if (news) this.#onText({ ...news, reset: isNew || news.reset })
    if (finished) this.#texts.delete(sessionId)
  }
}

/** A streamed answer. The last word is held back until it is complete, because it may be part of a secret. */
class StreamedAnswer {
  readonly stepId: string
  readonly #sessionId: string
  #text = ''
  #shown = ''

  constructor(sessionId: string, stepId: string) {
    this.#sessionId = sessionId
    this.stepId = stepId
  }

  get whole(): Text {
    return { type: 'text', sessionId: this.#sessionId, stepId: this.stepId, text: this.#shown, reset: true }
  }

  addText(text: string, isEnd: boolean): Text | null {
    this.#text += text
    const end = isEnd ? this.#text.length : this.#text.search(/\s\S*$/) + 1
    const shown = toShownText(this.#text.slice(0, end))
    if (shown === this.#shown) return null
    const goesOn = shown.startsWith(this.#shown)
    const news = { ...this.whole, text: goesOn ? shown.slice(this.#shown.length) : shown, reset: !goesOn }
    this.#shown = shown
    return news
  }
}
