import type { ElicitationAnswer } from '../../../../machines/agent/run-result.js'
import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import { whenAborted } from '../../../core/base/abort.js'
import { systemClock, unrefTimer } from '../../../core/base/clock.js'
import { ToolError } from '../../../core/tools/tool-error.js'

/** Maximum input requests per call. */
export const maxRounds = 10

/** How long to keep a call that waits for a person or has an unread result, in milliseconds. */
const keptMs = 3_600_000

export type Outcome = { result: JsonObject } | { error: unknown } | { asks: Json }

/** A question from the server, and the answer given before the call was made again. */
export type KnownAnswer = readonly [question: string, answer: ElicitationAnswer]

export interface CallWatch {
  signal: AbortSignal
  onProgress: (report: JsonObject) => void
  /** Stops the timer that limits silence. */
  stopTimer: () => void
}

interface CallOptions {
  make: (watch: CallWatch) => Promise<JsonObject>
  /** Maximum milliseconds without progress. 0 = off. The timer stops while a person is asked. */
  timeoutMs: number
  timeoutError: () => Error
  /** The answers that an earlier process received. */
  known: readonly KnownAnswer[]
}

/**
 * The open calls of one server. Before revision 2026, a server requests input in the middle of a call, so the call
 * stays open while the run rests. The call does not survive the process.
 */
export class OpenCalls {
  readonly #calls = new Map<string, OpenCall>()
  /** Calls that have not ended, in start order. */
  readonly #live = new Set<OpenCall>()

  begin(key: string, options: CallOptions): OpenCall {
    const forget = (): void => {
      if (this.#calls.get(key) === call) this.#calls.delete(key)
    }
    const onEnd = (): boolean => this.#live.delete(call)
    const call = new OpenCall(options, { onEnd, forget })
    this.#calls.set(key, call)
    this.#live.add(call)
    return call
  }

  find(key: string): OpenCall | undefined {
    return this.#calls.get(key)
  }

  /** The latest call without an open question, because these revisions do not name the call. */
  ask(params: Json): Promise<ElicitationAnswer> {
    const calls = [...this.#live]
    const asking = calls.findLast(({ isAsking }) => !isAsking) ?? calls.at(-1)
    return asking ? asking.ask(params) : Promise.resolve({ action: 'cancel' })
  }
}

export class OpenCall {
  readonly #abort = new AbortController()
  readonly #options: CallOptions
  readonly #onEnd: () => void
  readonly #forget: () => void
  /** Each answer is used for one question. If a server repeats a question, it has not accepted the answer. */
  readonly #known: KnownAnswer[]
  readonly #questions: { params: Json; answer: (answer: ElicitationAnswer) => void }[] = []
  #end: Outcome | undefined
  #count = 0
  #isTimed = true
  #wake: () => void = () => undefined
  #timer: unknown
  #onProgress: (report: JsonObject) => void = () => undefined

  constructor(options: CallOptions, { onEnd, forget }: { onEnd: () => void; forget: () => void }) {
    this.#options = options
    this.#known = [...options.known]
    this.#onEnd = onEnd
    this.#forget = forget
    this.#limitSilence()
    const onProgress = (report: JsonObject): void => {
      if (!this.isAsking) this.#limitSilence()
      this.#onProgress(report)
    }
    const stopTimer = (): void => {
      this.#isTimed = false
      this.#stopTimer()
    }
    options.make({ signal: this.#abort.signal, onProgress, stopTimer }).then(
      (result) => this.#close({ result }),
      (error: unknown) => this.#close({ error }),
    )
  }

  get isOver(): boolean {
    return this.#end !== undefined
  }

  get isAsking(): boolean {
    return this.#questions.length > 0
  }

  /** Resolves with the result of the call, or with its next question. */
  async next(signal: AbortSignal, onProgress: (report: JsonObject) => void): Promise<Outcome> {
    this.#onProgress = onProgress
    const stop = whenAborted(signal, () => this.#abort.abort(signal.reason))
    try {
      if (this.#end === undefined && !this.isAsking)
        await new Promise<void>((resolve) => (this.#wake = resolve))
    } finally {
      stop()
      this.#onProgress = () => undefined
    }
    const [question] = this.#questions
    if (this.#end === undefined && question) return { asks: question.params }
    this.#forget()
    this.#stopTimer()
    return this.#end ?? { error: signal.reason }
  }

  ask(params: Json): Promise<ElicitationAnswer> {
    this.#count += 1
    if (this.#count > maxRounds) {
      this.#abort.abort(askedTooOften())
      return Promise.resolve({ action: 'cancel' })
    }
    const text = JSON.stringify(params)
    const at = this.#known.findIndex(([question]) => question === text)
    const [known] = at < 0 ? [] : this.#known.splice(at, 1)
    if (known) return Promise.resolve(known[1])
    return new Promise((resolve) => {
      this.#questions.push({ params, answer: resolve })
      this.#keepFor(() => {
        while (this.isAsking) this.answer({ action: 'cancel' })
      })
      this.#wake()
    })
  }

  /** Answers the server's first question. */
  answer(answer: ElicitationAnswer): void {
    this.#questions.shift()?.answer(answer)
    if (!this.isAsking) this.#limitSilence()
  }

  #close(end: Outcome): void {
    const { reason } = this.#abort.signal as { reason: unknown }
    this.#end = reason instanceof ToolError ? { error: reason } : end
    this.#onEnd()
    this.#wake()
    // A run that has ended never reads this result, so the result is dropped later.
    this.#keepFor(this.#forget)
  }

  #limitSilence(): void {
    if (this.isOver) return
    this.#stopTimer()
    const { timeoutMs, timeoutError } = this.#options
    if (timeoutMs === 0 || !this.#isTimed) return
    this.#timer = systemClock.setTimeout(() => this.#abort.abort(timeoutError()), timeoutMs)
  }

  /** Calls `onEnd` after `keptMs`. The timer does not keep the process alive. */
  #keepFor(onEnd: () => void): void {
    this.#stopTimer()
    this.#timer = systemClock.setTimeout(onEnd, keptMs)
    unrefTimer(this.#timer)
  }

  #stopTimer(): void {
    systemClock.clearTimeout(this.#timer)
  }
}

export function askedTooOften(): ToolError {
  return new ToolError(
    'failed',
    `The server asked a person more than ${maxRounds} times in one call. The call was cancelled.`,
  )
}
