import type { EmittedEvent } from '../../../machines/agent/announcements.js'

/** Emits, or defers emitting until the machine's transition has been applied. */
export type Defer = (emit: () => void) => void

/** Emits events. */
export interface Emitter {
  emit(announcement: EmittedEvent): void
}

/** What of an answer has been shown. */
export interface ShownAnswer {
  stepId: string
  attempt: number
  text: string
  /** Whether parts of its calls have been shown. */
  hasCalls: boolean
}

/**
 * One attempt's streamed answer. Whatever happens, it announces exactly one chunk with `finished: true`; what arrives
 * after that is dropped. The first chunk of a later attempt has `reset`: readers drop what the step has shown so far.
 */
export class AnswerStream {
  readonly stepId: string
  readonly attempt: number
  #text = ''
  #open = true
  #begun = false
  #hasCalls = false
  #reset: boolean
  readonly #emitter: Emitter

  /** `before`: the stream of the attempt before, where that is not closed. */
  constructor(stepId: string, attempt: number, teller: Emitter, before: AnswerStream | null = null) {
    this.stepId = stepId
    this.attempt = attempt
    this.#reset = attempt > 1 || (before?.stepId === stepId && before.#begun)
    this.#emitter = teller
  }

  /** The text so far. */
  get text(): string {
    return this.#text
  }

  /** Whether parts of its calls have been shown. */
  get hasCalls(): boolean {
    return this.#hasCalls
  }

  write(text: string, reasoning: string): void {
    if (!this.#open || (text === '' && reasoning === '')) return
    this.#text += text
    this.#begun = true
    this.#emitter.emit(this.#chunk(text, reasoning, false))
  }

  /** A part of a call. What it takes back is taken back before. */
  writeCall(part: { callId: string; name: string; index: number; delta: string }): void {
    if (!this.#open) return
    if (this.#reset) this.#emitter.emit(this.#chunk('', '', false))
    this.#begun = this.#hasCalls = true
    const { stepId, attempt } = this
    this.#emitter.emit({ type: 'tool_call_delta', stepId, attempt, ...part })
  }

  /** Takes back what it has shown, where that is anything: the next chunk says so. */
  restart(): void {
    this.#text = ''
    this.#reset ||= this.#begun
  }

  /** Takes back what it has shown, and shows this. */
  replaceText(text: string): void {
    this.#reset = true
    this.#text = text
    if (this.#open && text !== '') this.#emitter.emit(this.#chunk(text, '', false))
  }

  close(defer: Defer): void {
    if (!this.#open) return
    this.#open = false
    const chunk = this.#chunk('', '', true)
    defer(() => {
      this.#emitter.emit(chunk)
    })
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
