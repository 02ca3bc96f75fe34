import type { ElicitationAnswer } from '../../../../machines/agent/run-result.js'
import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import { whenAborted } from '../../../core/base/abort.js'
import { systemClock, unrefTimer } from '../../../core/base/clock.js'
import { ToolError } from '../../../core/tools/tool-error.js'

/** Questions of one call. */
export const maxRounds = 10

/** Milliseconds for which a call is kept that waits for a person, or that no execution has taken the end of. */
const keptMs = 3_600_000

/** What a call comes to, or what it asks before. */
export type Outcome = { result: JsonObject } | { error: unknown } | { asks: Json }

/** A question that is open at the server, and what it was answered with before the call was made again. */
export type KnownAnswer = readonly [asked: string, answer: ElicitationAnswer]

/** What a call is made with that is under way here. */
export interface CallWatch {
  signal: AbortSignal
  onProgress: (report: JsonObject) => void
  /** Silence does not end the call any more. */
  stopTimer: () => void
}

interface CallOptions {
  /** Makes the call. */
  make: (made: CallWatch) => Promise<JsonObject>
  /** Milliseconds without a sign of progress; 0 is no limit. They stand still while a person is asked. */
  timeoutMs: number
  /** What is thrown when they are over. */
  timeoutError: () => Error
  /** Answers of an earlier process to the same questions. */
  known: readonly KnownAnswer[]
}

/**
 * The calls of one server that are under way. By the revisions before 2026 a server asks while its call is at work: the call
 * stays open here while the run rests, and nothing of it outlives the process.
 */
export class OpenCalls {
  readonly #calls = new Map<string, OpenCall>()
  /** Those that have not ended, in the order in which they began. */
  readonly #live = new Set<OpenCall>()

  begin(key: string, options: CallOptions): OpenCall {
    const forget = (): void => {
      if (this.#calls.get(key) === call) this.#calls.delete(key)
    }
    const call = new OpenCall(options, { onEnd: () => this.#live.delete(call), forget })
    this.#calls.set(key, call)
    this.#live.add(call)
    return call
  }

  find(key: string): OpenCall | undefined {
    return this.#calls.get(key)
  }

  /**
   * What the server asks: of the call that began last and asks nothing, because these revisions do not say which call it is.
   * Without a call, there is no run that could ask.
   */
  ask(params: Json): Promise<ElicitationAnswer> {
    const calls = [...this.#live]
    const asking = calls.findLast(({ isAsking }) => !isAsking) ?? calls.at(-1)
    return asking ? asking.ask(params) : Promise.resolve({ action: 'cancel' })
  }
}

/** One call under way. */
export class OpenCall {
  readonly #abort = new AbortController()
  readonly #options: CallOptions
  readonly #onEnd: () => void
  readonly #forget: () => void
  /** Each of them answers one question: a server that asks it again has not taken it. */
  readonly #known: KnownAnswer[]
  readonly #asked: { params: Json; answer: (answer: ElicitationAnswer) => void }[] = []
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
    return this.#asked.length > 0
  }

  /** The end of the call, or its next question. `signal` and `onProgress`: of the execution that waits for it. */
  async next(signal: AbortSignal, onProgress: (report: JsonObject) => void): Promise<Outcome> {
    this.#onProgress = onProgress
    const stop = whenAborted(signal, () => this.#abort.abort(signal.reason))
    try {
      if (this.#end === undefined && !this.isAsking)
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    } finally {
      stop()
      this.#onProgress = () => undefined
    }
    const [question] = this.#asked
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
    const at = this.#known.findIndex(([asked]) => asked === text)
    const [known] = at < 0 ? [] : this.#known.splice(at, 1)
    if (known) return Promise.resolve(known[1])
    return new Promise((resolve) => {
      this.#asked.push({ params, answer: resolve })
      this.#keepFor(() => {
        while (this.isAsking) this.answer({ action: 'cancel' })
      })
      this.#wake()
    })
  }

  /** Gives the server the answer to its first question. */
  answer(answer: ElicitationAnswer): void {
    this.#asked.shift()?.answer(answer)
    if (!this.isAsking) this.#limitSilence()
  }

  #close(end: Outcome): void {
    const { reason } = this.#abort.signal as { reason: unknown }
    this.#end = reason instanceof ToolError ? { error: reason } : end
    this.#onEnd()
    this.#wake()
    // A run that has ended meanwhile does not take this end: it is kept for a while, and forgotten.
    this.#keepFor(this.#forget)
  }

  #limitSilence(): void {
    if (this.isOver) return
    this.#stopTimer()
    const { timeoutMs, timeoutError } = this.#options
    if (timeoutMs === 0 || !this.#isTimed) return
    this.#timer = systemClock.setTimeout(() => this.#abort.abort(timeoutError()), timeoutMs)
  }

  /** A question waits for a person, and an end for an execution, for an hour. The timer keeps no process alive. */
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
    `The server asks a person more than ${maxRounds} times in one call. The call was given up.`,
  )
}
