import type { EmittedEvent } from '../../../machines/agent/announcements.js'

/** Emits immediately, or after the machine's current transition has been applied. */
export type Defer = (emit: () => void) => void

export interface Emitter {
  emit(announcement: EmittedEvent): void
}

/** What subscribers have received of an answer. */
export interface ShownAnswer {
  stepId: string
  attempt: number
  text: string
  hasCalls: boolean
}

/**
 * The streamed answer of one attempt. It emits exactly one chunk with `finished: true` and ignores later input. The
 * first chunk of a retry has `reset`, so that readers discard the step's earlier text.
 */
export class AnswerStream implements ShownAnswer {
  readonly stepId: string
  readonly attempt: number
  text = ''
  hasCalls = false
  #open = true
  #begun = false
  #reset: boolean
  readonly #emitter: Emitter

  constructor(stepId: string, attempt: number, emitter: Emitter, before: AnswerStream | null = null) {
    this.stepId = stepId
    this.attempt = attempt
    this.#reset = attempt > 1 || (before?.stepId === stepId && before.#begun)
    this.#emitter = emitter
  }

  write(text: string, reasoning: string): void {
    if (!this.#open || (text === '' && reasoning === '')) return
    this.text += text
    this.#begun = true
    this.#emitter.emit(this.#chunk(text, reasoning, false))
  }

  writeCall(part: { callId: string; name: string; index: number; delta: string }): void {
    if (!this.#open) return
    if (this.#reset) this.#emitter.emit(this.#chunk('', '', false))
    this.#begun = this.hasCalls = true
    const { stepId, attempt } = this
    this.#emitter.emit({ type: 'tool_call_delta', stepId, attempt, ...part })
  }

  restart(): void {
    this.text = ''
    this.#reset ||= this.#begun
  }

  replaceText(text: string): void {
    this.#reset = true
    this.text = text
    if (this.#open && text !== '') this.#emitter.emit(this.#chunk(text, '', false))
  }

  close(defer: Defer): void {
    if (!this.#open) return
    this.#open = false
    const chunk = this.#chunk('', '', true)
    defer(() => this.#emitter.emit(chunk))
  }

  #chunk(text: string, reasoning: string, finished: boolean): EmittedEvent {
    const { stepId, attempt } = this
    const chunk: EmittedEvent = { type: 'stream_chunk', stepId, attempt, text, finished }
    if (reasoning !== '') chunk.reasoning = reasoning
    if (this.#reset) {
      chunk.reset = true
      this.#reset = false
    }
    return chunk
  }
}
