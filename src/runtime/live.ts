import type { ActorScope, AnyActorRef, AnyEventObject } from 'xstate'
import type { AgentEvent, Announcement } from '../../machines/agent/announcements.js'
import type { AgentContext, AgentInput } from '../../machines/agent/context.js'
import { AnswerStream, type Defer } from './answer-stream.js'
import type { Clock } from './clock.js'
import type { Journal } from './journal.js'

/** What the app gives one run, besides its input: never seen by the model or the journal. */
export interface Binding {
  journal?: Journal | undefined
  /** The app's own object, handed to `execute`. */
  context?: unknown
}

/** The scope of any actor; which events it knows is the machine's own business. */
export type Scope = ActorScope<never, AnyEventObject>

/**
 * The side of a running agent actor that is not state: its clock, its journal and the answer that is being streamed.
 * Looked up by the actor itself, never by a run id. Only this file and journaled.ts know XState's actor scope.
 */
export class Live {
  /** The scope that the machine runs in: what it emits gets its stamp here. */
  readonly scope: Scope
  readonly clock: Clock
  readonly binding: Binding
  readonly #runId: string
  /** What the run starts from; null when it is restored. */
  readonly #input: AgentInput | null
  #started = false
  #seq = 0
  #stream: AnswerStream | null = null

  constructor(scope: Scope, runId: string, clock: Clock, binding: Binding, input: AgentInput | null) {
    this.#runId = runId
    this.#input = input
    this.clock = clock
    this.binding = binding
    this.scope = {
      ...scope,
      emit: (announcement) => {
        this.begin()
        scope.emit(this.#stamp(announcement as unknown as Announcement))
      },
    }
  }

  get started(): boolean {
    return this.#started
  }

  /**
   * The input is logged before anything of the run is seen or done. XState never starts a machine that is final from
   * the first, but lets it emit: so the first event, too, is a beginning.
   */
  begin(): void {
    if (this.#started) return
    this.#started = true
    if (this.#input) this.binding.journal?.append({ type: 'start', input: this.#input })
  }

  /** Announces something now, as the agent actor: for deltas and progress, which never are machine events. */
  readonly emit = (announcement: Announcement): void => {
    this.scope.emit(announcement)
  }

  /** Settles when what has happened so far is durable. No effect starts before. */
  flushed(): Promise<void> | undefined {
    return this.binding.journal?.flushed()
  }

  openStream(stepId: string, attempt: number): AnswerStream {
    this.#stream = new AnswerStream(stepId, attempt, this.emit)
    return this.#stream
  }

  /** Ends the answer that is being streamed, if there is one; returns the text that it had brought. */
  closeStream(defer: Defer): string {
    const stream = this.#stream
    this.#stream = null
    stream?.close(defer)
    return stream?.text ?? ''
  }

  /** For somebody who comes late: what holds now, under the number of the last event. */
  stampAgain(announcement: Announcement): AgentEvent {
    const seq = this.#seq
    return { ...announcement, id: `${this.#runId}:${seq}`, runId: this.#runId, seq, at: this.clock.now() }
  }

  #stamp(announcement: Announcement): AgentEvent {
    const seq = ++this.#seq
    return { ...announcement, id: `${this.#runId}:${seq}`, runId: this.#runId, seq, at: this.clock.now() }
  }
}

const lives = new WeakMap<AnyActorRef, Live>()

export function setLive(actor: AnyActorRef, live: Live): void {
  lives.set(actor, live)
}

export function liveOf(actor: AnyActorRef): Live | undefined {
  return lives.get(actor)
}

/** For an invoked actor: the agent that invoked it, and the context that the agent stands in now. */
export function agentOf(child: AnyActorRef): { live: Live; context: AgentContext; parent: AnyActorRef } {
  // oxlint-disable-next-line no-underscore-dangle -- XState has no other way to ask for the parent
  const parent = child._parent
  const live = parent && lives.get(parent)
  if (!parent || !live) throw new Error('This actor runs only inside agent.machine.')
  return { live, parent, context: (parent.getSnapshot() as { context: AgentContext }).context }
}
