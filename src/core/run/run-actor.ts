import { type Actor, createActor, type SnapshotFrom, transition } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import type { PublicEvent } from '../../../machines/agent/events.js'
import { describeError } from '../base/describe-error.js'
import type { AgentMachine } from '../live/journaled.js'
import { liveOf } from '../live/live.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { Above, Origin } from './run-parts.js'
import { Foresight } from './foresight.js'
import { Gate } from './gate.js'
import { type Inspector, safeInspector } from './safe-inspector.js'

export type AgentSnapshot = SnapshotFrom<AgentMachine>

/** Who is told what becomes of the actor. */
export interface Followers {
  /** Before it starts: whoever listens to its events. */
  made: (actor: Actor<AgentMachine>) => void
  reached: (snapshot: AgentSnapshot) => void
  complete: () => void
  /** Only what the machine itself does wrong: an agent that fails has a final state for it. */
  broken: (error: unknown) => void
}

/** The actor of a run: made, started or taken up again, spoken to, and foreseen. */
export class RunActor {
  readonly #gate = new Gate()
  readonly #foresight = new Foresight<AgentSnapshot, PublicEvent>()
  #actor: Actor<AgentMachine> | undefined

  /** Undefined while the session is still being read. */
  get snapshot(): AgentSnapshot | undefined {
    return this.#actor?.getSnapshot()
  }

  /** The run as it stands once it has heard what it was told: a second answer is one, however slow the store. */
  get ahead(): AgentSnapshot | undefined {
    const actor = this.#actor
    if (!actor) return undefined
    const now = liveOf(actor)?.clock.now() ?? 0
    return this.#foresight.after(actor.getSnapshot(), this.#gate.ahead, (ahead, event) =>
      ahead.status === 'active' ? transition(agentMachine, ahead, { now, ...event })[0] : ahead,
    )
  }

  /** The state as plain JSON. */
  get persisted(): unknown {
    return this.#actor?.getPersistedSnapshot()
  }

  /** Makes the actor, and listens to it. */
  make(
    machine: AgentMachine,
    { input, snapshot, log }: Origin,
    { above, inspect }: { above: Above | undefined; inspect: Inspector | undefined },
    followers: Followers,
  ): void {
    const actor = createActor(machine, {
      ...(input && { input: input as never }),
      ...(snapshot && { snapshot: snapshot as never }),
      ...(above && { parent: above.parent, id: above.id }),
      ...(inspect && {
        inspect: safeInspector(inspect, (thrown) => {
          this.#warnOfInspector(thrown)
        }),
      }),
    } as never)
    this.#actor = actor
    followers.made(actor)
    log?.onFailure((failure) => {
      queueMicrotask(() => {
        this.#gate.fail(failure)
      })
    })
    actor.subscribe({
      next: (reached) => {
        followers.reached(reached)
        above?.watch(reached.context)
      },
      complete: followers.complete,
      error: followers.broken,
    })
    this.#gate.open(actor, log)
  }

  start(): void {
    this.#actor?.start()
  }

  /** A run that was interrupted in its work takes it up again; one that rests, or has ended, tells how it stands. */
  goOn({ traits }: ToolSet, ended: (snapshot: AgentSnapshot) => void): void {
    const actor = this.#actor
    if (!actor) return
    const { status, context } = actor.getSnapshot()
    const isInterrupted = context.state === 'RUNNING' || context.state === 'WAITING_FOR_TOOL'
    if (status !== 'active' || !isInterrupted) {
      actor.start()
      // XState tells nobody of a start that is an end.
      if (status !== 'active') {
        liveOf(actor)?.tellFound(context)
        ended(actor.getSnapshot())
      }
      return
    }
    setTimeout(() => {
      actor.start()
      const isKnown = JSON.stringify(traits) === JSON.stringify(context.tools)
      actor.send({ type: 'RESUMED', ...(!isKnown && { tools: traits }) })
    })
  }

  /** Says something to the run; what is said before there is an actor waits for it. */
  send(event: PublicEvent): void {
    this.#gate.send(event)
  }

  warn(code: string, message: string): void {
    if (this.#actor) liveOf(this.#actor)?.emit({ type: 'warning', code, message })
  }

  /** A moment later: the inspector was called in the middle of a transition. */
  #warnOfInspector(thrown: unknown): void {
    queueMicrotask(() => {
      const message = `The inspector threw, and is not called again: ${describeError(thrown)}`
      this.warn('subscriber_error', message)
    })
  }
}
