import { type GuardrailsState, initialGuardrails } from '../../guards/state.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { Message } from '../../machines/agent/messages.js'
import { noUsage, type Usage } from '../../machines/agent/usage.js'
import { UsageError } from '../errors.js'
import { newId } from './new-id.js'

/** What a session keeps beside its messages; plain JSON. */
export interface SessionMetadata {
  guardrails: GuardrailsState
  /** Whether the session has had its one budget warning. */
  warnedOfBudget: boolean
}

/** A conversation over several runs: its transcript, its totals and the state of its guards. */
export class Session {
  readonly id: string
  readonly name: string | undefined
  messages: readonly Message[] = []
  /** Totals of all runs. */
  usage: Usage = noUsage
  metadata: SessionMetadata = { guardrails: initialGuardrails(), warnedOfBudget: false }
  #runId: string | null = null

  constructor(id: string, name?: string) {
    this.id = id
    this.name = name
  }

  /** One run at a time: a second one is refused until the first has ended. */
  acquire(runId: string): void {
    if (this.#runId !== null) {
      throw new UsageError(
        'session_busy',
        `Session '${this.id}' is busy with run '${this.#runId}'. Wait for its final state, or cancel it.`,
        this.id,
      )
    }
    this.#runId = runId
  }

  /** Takes over what a run has come to. */
  update(context: AgentContext): void {
    this.messages = context.messages
    this.usage = context.usage.session
    this.metadata = { guardrails: context.guardrails, warnedOfBudget: context.warnedOfBudget }
  }

  release(): void {
    this.#runId = null
  }
}

/** A new, empty session with an id of its own. */
export function createSession(name?: string): Session {
  return new Session(newId(), name)
}
