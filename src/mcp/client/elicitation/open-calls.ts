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
  /** Called when the call becomes a task, because a task's requests have separate timeouts. */
  stopTimer: () => void
}

export interface CallOptions {
  make: (watch: CallWatch) => Promise<JsonObject>
  /** Maximum milliseconds without progress. 0 = off. The timer stops while a person is asked. */
  timeoutMs: number
  timeoutError: () => Error
  /** The answers that an earlier process received. */
  known: readonly KnownAnswer[]
}

export type OpenCalls = ReturnType<typeof createOpenCalls>

/**
 * The open calls of one server. Before revision 2026, a server requests input in the middle of a call, so the call
 * stays open while the run rests. The call does not survive the process.
 */
export function createOpenCalls() {
  const calls = new Map<string, OpenCall>()
  /** Calls that have not ended, in start order. */
  const live = new Set<OpenCall>()
  return {
    begin(key: string, options: CallOptions): OpenCall {
      const forget = (): void => {
        if (calls.get(key) === call) calls.delete(key)
      }
      const call = openCall(options, { onEnd: () => void live.delete(call), forget })
      calls.set(key, call)
      live.add(call)
      return call
    },
    find: (key: string): OpenCall | undefined => calls.get(key),
    /** The latest call without an open question, because these revisions do not name the call. */
    ask(params: Json): Promise<ElicitationAnswer> {
      const all = [...live]
      const asking = all.findLast((call) => !call.isAsking()) ?? all.at(-1)
      return asking ? asking.ask(params) : Promise.resolve({ action: 'cancel' })
    },
  }
}

export type OpenCall = ReturnType<typeof openCall>

function openCall(
  { make, timeoutMs, timeoutError, known: earlier }: CallOptions,
  { onEnd, forget }: { onEnd: () => void; forget: () => void },
) {
  const abort = new AbortController()
  const questions: { params: Json; answer: (answer: ElicitationAnswer) => void }[] = []
  /** Each answer is used for one question. If a server repeats a question, it has not accepted the answer. */
  const known = [...earlier]
  let end: Outcome | undefined
  let count = 0
  let isTimed = true
  let wake = (): void => undefined
  let timer: unknown
  let onReport: (report: JsonObject) => void = () => undefined

  const isOver = (): boolean => end !== undefined
  const isAsking = (): boolean => questions.length > 0
  const clearTimer = (): void => systemClock.clearTimeout(timer)

  function limitSilence(): void {
    if (isOver()) return
    clearTimer()
    if (timeoutMs === 0 || !isTimed) return
    timer = systemClock.setTimeout(() => abort.abort(timeoutError()), timeoutMs)
  }

  /** Calls back after `keptMs`. The timer does not keep the process alive. */
  function keepFor(callback: () => void): void {
    clearTimer()
    timer = systemClock.setTimeout(callback, keptMs)
    unrefTimer(timer)
  }

  function close(outcome: Outcome): void {
    const { reason } = abort.signal as { reason: unknown }
    end = reason instanceof ToolError ? { error: reason } : outcome
    onEnd()
    wake()
    // A run that has ended never reads this result, so the result is dropped later.
    keepFor(forget)
  }

  function answer(given: ElicitationAnswer): void {
    questions.shift()?.answer(given)
    if (!isAsking()) limitSilence()
  }

  limitSilence()
  make({
    signal: abort.signal,
    onProgress: (report) => {
      if (!isAsking()) limitSilence()
      onReport(report)
    },
    stopTimer: () => {
      isTimed = false
      clearTimer()
    },
  }).then(
    (result) => close({ result }),
    (error: unknown) => close({ error }),
  )

  return {
    isOver,
    isAsking,
    answer,
    async next(signal: AbortSignal, onProgress: (report: JsonObject) => void): Promise<Outcome> {
      onReport = onProgress
      const stop = whenAborted(signal, () => abort.abort(signal.reason))
      try {
        if (end === undefined && !isAsking()) await new Promise<void>((resolve) => (wake = resolve))
      } finally {
        stop()
        onReport = () => undefined
      }
      const [question] = questions
      if (end === undefined && question) return { asks: question.params }
      forget()
      clearTimer()
      return end ?? { error: signal.reason }
    },
    ask(params: Json): Promise<ElicitationAnswer> {
      count += 1
      if (count > maxRounds) {
        abort.abort(askedTooOften())
        return Promise.resolve({ action: 'cancel' })
      }
      const text = JSON.stringify(params)
      const at = known.findIndex(([question]) => question === text)
      const [found] = at < 0 ? [] : known.splice(at, 1)
      if (found) return Promise.resolve(found[1])
      return new Promise((resolve) => {
        questions.push({ params, answer: resolve })
        keepFor(() => {
          while (isAsking()) answer({ action: 'cancel' })
        })
        wake()
      })
    },
  }
}

export function askedTooOften(): ToolError {
  return new ToolError(
    'failed',
    `The server asked a person more than ${maxRounds} times in one call. The call was cancelled.`,
  )
}
