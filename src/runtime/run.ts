import type { Observable } from 'rxjs'
import { type Actor, createActor, type SnapshotFrom } from 'xstate'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { PublicEvent } from '../../machines/agent/events.js'
import type { AgentState, RunResult } from '../../machines/agent/outcome.js'
import { pendingCalls, resultOf } from '../../machines/agent/result-of.js'
import { isNearBudget } from '../../machines/agent/totals.js'
import { UsageError } from '../errors.js'
import { formatValue } from '../tools/format-value.js'
import { EventHub } from './event-hub.js'
import { guardedInspector, type Inspector } from './guarded-inspector.js'
import { toMessages, type UserInput } from './input.js'
import type { AgentMachine } from './journaled.js'
import { liveOf } from './live.js'
import { describe } from './plain-error.js'
import { Rest } from './rest.js'
import type { Session } from './session.js'

export interface RunParts {
  machine: AgentMachine
  /** The machine's input, bound to this run. */
  input: object
  session: Session
  signal: AbortSignal | undefined
  /** Settles when the run may start; a rejection refuses it. */
  ready: Promise<void> | undefined
  inspect: Inspector | undefined
}

/**
 * One run of an agent: a handle on its actor, and nothing else. Iterate it for its events, or await `result`: both end
 * where the run rests.
 *
 * @example
 * for await (const event of run) if (event.type === 'stream_chunk') process.stdout.write(event.text)
 * const { state, output } = await run.result
 */
export class Run implements AsyncIterable<AgentEvent> {
  readonly #actor: Actor<AgentMachine>
  readonly #hub: EventHub
  readonly #rest = new Rest<RunResult>()

  constructor({ machine, input, session, signal, ready, inspect }: RunParts) {
    this.#actor = createActor(machine, {
      input: input as never,
      ...(inspect && {
        inspect: guardedInspector(inspect, (thrown) => {
          this.#warnOfInspector(thrown)
        }),
      }),
    })
    this.#hub = new EventHub(this.#actor, this.#rest)

    const release = signal ? this.#follow(signal) : () => undefined
    const refuse = (error: unknown): void => {
      session.release()
      release()
      this.#rest.refuse(error)
      this.#hub.fail(error)
    }
    this.#actor.subscribe({
      next: (snapshot) => {
        this.#settle(snapshot, session)
      },
      complete: () => {
        release()
        this.#hub.complete()
      },
      // Only what the machine itself does wrong ends here: an agent that fails has a final state for it.
      error: refuse,
    })
    // Later, so that whoever subscribes right after run() misses nothing.
    ;(ready ?? Promise.resolve()).then(() => this.#actor.start(), refuse)
  }

  /** Every event. Completes at a final state; errors only when the run is refused before it starts. */
  get events$(): Observable<AgentEvent> {
    return this.#hub.events$
  }

  /** The streamed text, piece by piece. */
  get text$(): Observable<string> {
    return this.#hub.text$
  }

  /** The present state, then every change of it. */
  get state$(): Observable<AgentState> {
    return this.#hub.state$
  }

  get id(): string {
    return this.#context.runId
  }

  get sessionId(): string {
    return this.#context.sessionId
  }

  get state(): AgentState {
    return this.#context.state ?? 'RUNNING'
  }

  /**
   * How the run stands at its next rest: a final state, PAUSED or WAITING_FOR_INPUT (interactive runs rest only at
   * finals). Never rejects for what an agent does; `orThrow(result)` if you like exceptions. Rejects with a
   * ConfigError when the run is refused before it starts.
   */
  get result(): Promise<RunResult> {
    return this.#rest.promise
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    return this.#hub.iterate()
  }

  /** Ends the run in CANCELLED, whatever it is doing. After a final state this does nothing. */
  cancel(why?: string): void {
    this.#send({ type: 'CANCEL', ...(why !== undefined && { why }) })
  }

  /** Rests in PAUSED at the next safe point; a natural end comes first. */
  pause(): void {
    this.#mustBeActive('pause')
    this.#send({ type: 'PAUSE' })
  }

  resume(): void {
    this.#mustBe('PAUSED', 'resume')
    this.#send({ type: 'RESUME' })
  }

  /** Tells the model something at the next safe point, without resetting any counter. A paused run goes on. */
  steer(text: string): void {
    this.#mustBeActive('steer')
    const [message] = toMessages(text)
    if (typeof message?.content !== 'string') this.#refuse('steer', 'steering is one text')
    this.#send({ type: 'STEER', text: message.content })
  }

  /** The next user message of an interactive run. */
  reply(input: UserInput): void {
    if (!this.#snapshot.matches({ WAITING_FOR_INPUT: 'message' }))
      this.#refuse('reply', 'it waits for no message')
    this.#send({ type: 'REPLY', messages: toMessages(input) })
  }

  /** Lets a call run; `editedInput` replaces the arguments that the model gave. */
  approve(callId: string, editedInput?: unknown): void {
    this.#mustAwait(callId, 'approval')
    const edit = editedInput === undefined ? {} : { arguments: toJson(editedInput, callId) }
    this.#send({ type: 'APPROVE', callId, ...edit })
  }

  /** Refuses a call; the model reads why. */
  reject(callId: string, why = ''): void {
    this.#mustAwait(callId, 'approval')
    this.#send({ type: 'REJECT', callId, why })
  }

  /** The result of a call that the client carries out. An Error becomes an error result. */
  toolOutput(callId: string, value: unknown): void {
    this.#mustAwait(callId, 'client')
    const { maxResultChars } = this.#context.config.toolCalls
    const isError = value instanceof Error
    const { content } = formatValue(isError ? value.message : value, maxResultChars)
    this.#send({ type: 'TOOL_OUTPUT', callId, content, ...(isError && { isError }) })
  }

  /** Whether the budget is nearly used up (`guardrails.reserveTokens`, `reserveCostFraction`). */
  nearBudget(): boolean {
    return isNearBudget(this.#context)
  }

  /** The run's state as plain JSON, fit to be stored. */
  snapshot(): unknown {
    return this.#actor.getPersistedSnapshot()
  }

  get #snapshot(): SnapshotFrom<AgentMachine> {
    return this.#actor.getSnapshot()
  }

  get #context(): AgentContext {
    return this.#snapshot.context
  }

  /** Cancels when the signal aborts; returns how to stop listening. */
  #follow(signal: AbortSignal): () => void {
    const onAbort = (): void => {
      this.cancel(signal.reason instanceof Error ? signal.reason.message : undefined)
    }
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort)
    return () => {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** The only way into the machine: events of our own making, never foreign objects. */
  #send(event: PublicEvent): void {
    this.#actor.send(event)
  }

  /** A moment later: the inspector was called in the middle of a transition. */
  #warnOfInspector(thrown: unknown): void {
    queueMicrotask(() => {
      const message = `The inspector threw, and is not called again: ${describe(thrown)}`
      liveOf(this.#actor)?.emit({ type: 'warning', code: 'subscriber_error', message })
    })
  }

  #settle(snapshot: SnapshotFrom<AgentMachine>, session: Session): void {
    const { context, status } = snapshot
    const atFinal = status !== 'active'
    const atRest = context.state === 'PAUSED' || context.state === 'WAITING_FOR_INPUT'
    if (atFinal || atRest) session.update(context)
    if (atFinal || (atRest && !context.config.interactive)) {
      if (atFinal) session.release()
      this.#rest.reach(resultOf(context))
    } else {
      this.#rest.leave()
    }
  }

  #mustBeActive(method: string): void {
    if (this.#snapshot.status !== 'active') this.#refuse(method, 'it has ended')
  }

  #mustBe(state: AgentState, method: string): void {
    if (this.#context.state !== state) this.#refuse(method, `it is not ${state}`)
  }

  #refuse(method: string, why: string): never {
    throw new UsageError(
      'wrong_state',
      `${method}(): the run is ${this.state} and ${why}. Await run.result, or watch run.state$, before you call it.`,
      method,
    )
  }

  #mustAwait(callId: string, needs: 'approval' | 'client'): void {
    const pending = pendingCalls(this.#context)
    if (pending.some((call) => call.callId === callId && call.needs === needs)) return
    const known = pending.filter((call) => call.needs === needs).map((call) => call.callId)
    throw new UsageError(
      'unknown_call',
      known.length > 0
        ? `Call '${callId}' does not wait for this answer (never asked, or answered already). Waiting: ${known.join(', ')}.`
        : `Call '${callId}' does not wait for this answer: the run is ${this.state} and no call waits for one.`,
      callId,
    )
  }
}

function toJson(value: unknown, callId: string): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch {
    text = undefined
  }
  if (text !== undefined) return text
  throw new UsageError(
    'invalid_input',
    `The edited input of call '${callId}' cannot be written as JSON.`,
    callId,
  )
}
