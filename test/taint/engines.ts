import {
  type Agent,
  defineAgents,
  runSession,
  type SessionAnswer,
  type RunSessionOptions,
  createSessionRunner,
  type SessionResult,
} from '../../src/index.js'
import { type DbosLike, dbosSessions } from '../../src/dbos/index.js'
import { type RestateLike, restateSessions } from '../../src/restate/index.js'

type Work = (input: object) => Promise<SessionResult>
type Handler = (context: object, input?: object) => Promise<unknown>

/** The engines that drive sessions, each drive in a separate process, and the data that they store. */
export class Engines {
  readonly #process: () => Agent
  readonly returned: unknown[] = []
  #drives = 0

  constructor(process: () => Agent) {
    this.#process = process
  }

  begin(options: Pick<RunSessionOptions, 'input' | 'turn'>): Promise<SessionResult> {
    return this.#written(runSession(this.#process(), { session: 's', ...options }))
  }

  /** With each engine in turn. */
  goOn(answers: readonly SessionAnswer[], at: number): Promise<SessionResult> {
    this.#drives += 1
    const agents = defineAgents({ own: this.#process() })
    const options = { session: 's', answers, at }
    if (this.#drives % 2 === 0) return this.#written(createSessionRunner(agents).runSession(options))
    let work: Work | undefined
    const DBOS = {
      registerWorkflow: (registered: Work) => (work = registered),
      runStep: (step: () => Promise<unknown>) => this.#written(step()),
      enqueueWorkflowWithOptions: () => Promise.resolve(),
    }
    dbosSessions(DBOS as unknown as DbosLike, agents)
    if (!work) throw new Error('DBOS has no workflow.')
    return this.#written(work({ ...options, base: 'answer', attempt: 0 }))
  }

  /** The data of an ended session that Restate receives. */
  async end(): Promise<void> {
    const handlers: Record<string, Handler> = {}
    const restate = {
      TerminalError: Error,
      handlers: {
        object: { exclusive: (_: object, work: Handler) => work, shared: (_: object, work: Handler) => work },
      },
      object: (definition: { handlers: object }) => Object.assign(handlers, definition.handlers),
    }
    restateSessions(restate as unknown as RestateLike, defineAgents({ own: this.#process() }))
    const context = { key: 's', run: (_: string, step: () => Promise<unknown>) => this.#written(step()) }
    await this.#written(handlers['run']?.(context) ?? Promise.reject(new Error('Restate has no handler.')))
  }

  async #written<Value>(work: Promise<Value>): Promise<Value> {
    try {
      const value = await work
      this.returned.push(value)
      return value
    } catch (error) {
      this.returned.push(String(error), error)
      throw error
    }
  }
}
