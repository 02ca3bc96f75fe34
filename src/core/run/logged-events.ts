import { createActor, initialTransition, transition } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import {
  applyRecord,
  createFoldedSession,
  type FoldedRun,
  type RunReducer,
  type FoldedSession,
} from '../sessions/fold-session.js'
import type { LogRecord } from '../sessions/store/store.js'

/** The events of a log's records: the machine is pure, so folding the records emits the same events again. */
export class LoggedEvents {
  readonly #id: string
  #standing: FoldedSession | undefined
  #announced: EmittedEvent[] = []

  constructor(sessionId: string) {
    this.#id = sessionId
  }

  /** The number of the last record. */
  get head(): number {
    return this.#standing?.head ?? 0
  }

  get run(): FoldedRun | null {
    return this.#standing?.run ?? null
  }

  /** One record more, and what it announces. */
  takeRecord(record: LogRecord): readonly EmittedEvent[] {
    this.#standing ??= createFoldedSession([record])
    this.#announced = []
    applyRecord(this.#standing, record, this.#id, this.#folding)
    return this.#announced
  }

  readonly #folding: RunReducer = {
    start: (input) => this.#collect(initialTransition(agentMachine, input)),
    step: (run, event) => this.#collect(transition(agentMachine, run, event)),
    restore: (state) =>
      createActor(agentMachine, { snapshot: state as never, input: undefined as never }).getSnapshot(),
  }

  #collect([run, actions]: ReturnType<typeof initialTransition<typeof agentMachine>>): FoldedRun {
    for (const { type, params } of actions as readonly { type: string; params: unknown }[]) {
      if (type === 'xstate.emit') this.#announced.push((params as { event: EmittedEvent }).event)
    }
    return run
  }
}
