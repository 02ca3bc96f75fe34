import type { AnyActorRef, SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { Step, StepCompleted, StepType } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../machines/agent/events.js'
import type { Defer, Teller } from './answer-stream.js'
import type { Clock } from '../base/clock.js'
import { failureWithCause } from '../base/thrown.js'
import { plainError } from '../base/plain-error.js'

type PayloadOf<Type extends StepType> = Extract<StepCompleted, { stepType: Type }>['payload']

/** What the end of a step is told with. Without an `outcome`, it is `ok`. */
export interface Ending<Type extends StepType> extends Partial<Pick<StepCompleted, 'outcome' | 'error'>> {
  payload: PayloadOf<Type>
}

/** A step as the actor that does the work describes it; `Output` is what that work comes to. */
export interface Work<Type extends StepType, Output> {
  readonly step: Extract<Step, { stepType: Type }>
  /** Of the call that is carried out, where it is one. */
  readonly callId?: string
  /** Asked when the end is told, of the agent as it stands then; null: the work has come to nothing. */
  ending(output: Output | null, context: AgentContext): Ending<Type>
  /** Whether shields still look at what the work has come to: the end is told when they have. */
  isHeld?(context: AgentContext): boolean
}

interface OpenStep {
  work: Work<StepType, unknown>
  owner: AnyActorRef
  startedAt: number
  /** What has ended the work, and when, while shields look at what it has come to. */
  held?: { event: AgentMachineEvent; completedAt: number }
  isOver?: true
}

/**
 * The steps that are under way. One ends with the event that brings its outcome, or with the one that stops the actor
 * that does its work: so each is completed exactly once, however the run goes on.
 */
export class OpenSteps {
  #open: OpenStep[] = []
  readonly #clock: Clock
  readonly #teller: Teller

  constructor(clock: Clock, teller: Teller) {
    this.#clock = clock
    this.#teller = teller
  }

  /** `owner` has started to work. Whoever hears of it may stop it: look at the signal afterwards. */
  start<Type extends StepType, Output>(owner: AnyActorRef, work: Work<Type, Output>): void {
    const startedAt = this.#clock.now()
    const step = { work: work as unknown as Work<StepType, unknown>, owner, startedAt }
    // Few are under way, mostly: `push` makes room for sixteen more. Of thousands, not each is a copy of all before it.
    if (this.#open.length < 16) this.#open = this.#open.concat(step)
    else this.#open.push(step)
    this.#teller.emit({ type: 'step_started', ...work.step, startedAt })
  }

  /** The work has ended by itself, before whoever does it. */
  end<Type extends StepType, Output>(work: Work<Type, Output>, ending: Ending<Type>): void {
    const open = this.#open.find((one) => one.work === (work as unknown))
    if (open === undefined) return
    this.#complete(open, ending as unknown as Ending<StepType>)
    this.#forget()
  }

  /** Ends what `event` ends, once the agent stands where it leads and before it announces anything. */
  endWith(event: AgentMachineEvent, agent: AnyActorRef, defer: Defer): void {
    if (this.#open.length === 0) return
    defer(() => {
      const { status, children, context } = agent.getSnapshot() as SnapshotFrom<typeof agentMachine>
      const isAtWork = ({ id }: AnyActorRef) =>
        status === 'active' && (children as Readonly<Record<string, unknown>>)[id]
      const begun = this.#open
      const { length } = begun
      for (const [at, open] of begun.entries()) {
        // What begins as an answer to what is told here is none of this event's.
        if (at === length) break
        if (open.isOver) continue
        if (status === 'active' && open.work.isHeld?.(context)) {
          open.held ??= { event, completedAt: this.#clock.now() }
          continue
        }
        const ending =
          endingBy(open.held?.event ?? event, open, context) ??
          (isAtWork(open.owner) === open.owner ? null : cancelled(open, context))
        if (ending !== null) this.#complete(open, ending)
      }
      this.#forget()
    })
  }

  /** All at once: one event can end thousands. */
  #forget(): void {
    if (this.#open.some(({ isOver }) => isOver)) this.#open = this.#open.filter(({ isOver }) => !isOver)
  }

  #complete(open: OpenStep, { payload, outcome = 'ok', error }: Ending<StepType>): void {
    if (open.isOver) return
    open.isOver = true
    const { startedAt, held } = open
    const { step } = open.work
    const completedAt = held?.completedAt ?? this.#clock.now()
    const completed = { type: 'step_completed', ...step, startedAt, completedAt, outcome, payload }
    this.#teller.emit((error ? { ...completed, error } : completed) as StepCompleted)
  }
}

/** What an event says of a step; null when it is not about it. */
function endingBy(event: AgentMachineEvent, open: OpenStep, context: AgentContext): Ending<StepType> | null {
  const { owner, work } = open
  if (work.callId !== undefined) {
    if (!('callId' in event) || event.callId !== work.callId) return null
    if (event.type === 'TOOL_RESULT') return work.ending(event.result, context)
    return event.type === 'CHILD_RESTS' ? cancelled(open, context) : null
  }
  if (event.type === `xstate.done.actor.${owner.id}` && 'output' in event)
    return work.ending(event.output, context)
  if (event.type === `xstate.error.actor.${owner.id}` && 'error' in event) {
    const failure = plainError(event.error)
    const { code, message } = failure
    return {
      outcome: 'error',
      error: failureWithCause({ code, message }, failure),
      ...work.ending(null, context),
    }
  }
  return null
}

function cancelled({ work }: OpenStep, context: AgentContext): Ending<StepType> {
  return { outcome: 'cancelled', payload: work.ending(null, context).payload }
}
