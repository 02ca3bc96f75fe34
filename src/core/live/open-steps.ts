import type { AnyActorRef, SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { Announcement, Step, StepCompleted, StepType } from '../../../machines/agent/announcements.js'
import type { AgentMachineEvent } from '../../../machines/agent/events.js'
import type { Defer } from './answer-stream.js'
import type { Clock } from '../base/clock.js'
import { plainError } from '../base/plain-error.js'

type PayloadOf<Type extends StepType> = Extract<StepCompleted, { stepType: Type }>['payload']

/** What the end of a step is told with. Without an `outcome`, it is `ok`. */
export interface Ending<Type extends StepType> extends Partial<Pick<StepCompleted, 'outcome' | 'error'>> {
  payload: PayloadOf<Type>
}

/** A step as the actor that does the work describes it; `Output` is what that work comes to. */
export interface Work<Type extends StepType, Output> {
  step: Extract<Step, { stepType: Type }>
  /** Asked when the step has ended; null: it has come to nothing. */
  ending: (output: Output | null) => Ending<Type>
}

interface OpenStep extends Work<StepType, unknown> {
  owner: AnyActorRef
  startedAt: number
}

/**
 * The steps that are under way. One ends with the event that brings its outcome, or with the one that stops the actor
 * that does its work: so each is completed exactly once, however the run goes on.
 */
export class OpenSteps {
  readonly #open = new Set<OpenStep>()
  readonly #clock: Clock
  readonly #emit: (announcement: Announcement) => void

  constructor(clock: Clock, emit: (announcement: Announcement) => void) {
    this.#clock = clock
    this.#emit = emit
  }

  /** `owner` has started to work. Whoever hears of it may stop it: look at the signal afterwards. */
  start<Type extends StepType, Output>(owner: AnyActorRef, work: Work<Type, Output>): void {
    const startedAt = this.#clock.now()
    this.#open.add({ ...(work as unknown as Work<StepType, unknown>), owner, startedAt })
    this.#emit({ type: 'step_started', ...work.step, startedAt })
  }

  /** Ends what `event` ends, once the agent stands where it leads and before it announces anything. */
  endWith(event: AgentMachineEvent, agent: AnyActorRef, defer: Defer): void {
    if (this.#open.size === 0) return
    defer(() => {
      const { status, children } = agent.getSnapshot() as SnapshotFrom<typeof agentMachine>
      const isAtWork = ({ id }: AnyActorRef) =>
        status === 'active' && (children as Readonly<Record<string, unknown>>)[id]
      for (const open of this.#open) {
        const ending = endingBy(event, open) ?? (isAtWork(open.owner) === open.owner ? null : cancelled(open))
        if (ending !== null) this.#complete(open, ending)
      }
    })
  }

  #complete(open: OpenStep, { payload, outcome = 'ok', error }: Ending<StepType>): void {
    if (!this.#open.delete(open)) return
    const { step, startedAt } = open
    const completedAt = this.#clock.now()
    const completed = { type: 'step_completed', ...step, startedAt, completedAt, outcome, payload }
    this.#emit((error ? { ...completed, error } : completed) as StepCompleted)
  }
}

/** What an event says of a step; null when it is not about it. */
function endingBy(event: AgentMachineEvent, open: OpenStep): Ending<StepType> | null {
  const { step, owner, ending } = open
  if (step.stepType === 'tool_execution') {
    if (!('callId' in event) || event.callId !== step.callId) return null
    if (event.type === 'TOOL_RESULT') return ending(event.result)
    return event.type === 'CHILD_RESTS' ? cancelled(open) : null
  }
  if (event.type === `xstate.done.actor.${owner.id}` && 'output' in event) return ending(event.output)
  if (event.type === `xstate.error.actor.${owner.id}` && 'error' in event) {
    const { code, message } = plainError(event.error)
    return { outcome: 'error', error: { code, message }, ...ending(null) }
  }
  return null
}

function cancelled({ ending }: OpenStep): Ending<StepType> {
  return { outcome: 'cancelled', payload: ending(null).payload }
}
