import {
  type Agent,
  defineAgents,
  runSession,
  type RunSessionOptions,
  type SessionAnswer,
  type SessionResult,
} from '../../src/index.js'
import { mcpServer } from '../../src/mcp/server/index.js'
import { rpc } from '../mcp/server/support.js'

/** An MCP client that starts the run of a cell. Its connection breaks often, so it sends each call twice. */
export class Caller {
  readonly #message: string
  readonly #broken: string[]
  #requestState: unknown
  #keys: readonly string[] = []

  constructor(message: string, broken: string[]) {
    this.#message = message
    this.#broken = broken
  }

  /** One call in a separate process, up to the next wait. `runSession` sends messages that a form cannot. */
  async call(agent: Agent, { answers = [], at, ...options }: RunSessionOptions): Promise<SessionResult> {
    const agents = defineAgents({ chaos: agent })
    const handler = mcpServer({ agents, authorize: 'none', drainMs: 0, onError: () => undefined })
    const forms = answers.flatMap((answer) => this.#toForm(answer))
    const others = answers.filter((answer) => this.#toForm(answer).length === 0)
    const params = {
      name: 'chaos',
      arguments: { message: this.#message, session: 'chaos' },
      ...(forms.length > 0 && {
        requestState: this.#requestState,
        inputResponses: Object.fromEntries(forms),
      }),
    }
    const send = () => rpc(handler, 'tools/call', params, { capabilities: { elicitation: { form: {} } } })
    const replies = await Promise.all([send(), send()])
    for (const { result, error } of replies) {
      if (error) this.#broken.push(`an MCP call failed: ${error.message}`)
      const { inputRequests, requestState, _meta: meta } = (result ?? {}) as Record<string, unknown>
      if (inputRequests === undefined && meta === undefined)
        this.#broken.push(`an MCP call was refused: ${JSON.stringify(result)}`)
      this.#keys = Object.keys(Object(inputRequests) as object)
      this.#requestState = requestState
    }
    // The process may still hold the session for a moment.
    await handler.drain()
    const { input: _input, ...rest } = options
    return runSession(agents, {
      ...rest,
      ...(others.length > 0 && { answers: others, ...(at !== undefined && { at }) }),
    })
  }

  #toForm(answer: SessionAnswer): [string, object][] {
    if (!('callId' in answer)) return []
    const key = this.#keys.find((one) => one.slice(0, one.lastIndexOf('@')) === answer.callId)
    if (key === undefined) return []
    const accept = (content: object): [string, object][] => [[key, { action: 'accept', content }]]
    if (answer.type === 'approve') {
      const isPlain = answer.editedInput === undefined && answer.grant === undefined
      return isPlain ? accept({ confirm: true }) : []
    }
    if (answer.type === 'reject') return accept({ confirm: false, why: answer.why })
    if (typeof answer.value !== 'string') return []
    return accept({ result: JSON.stringify(answer.value), failed: answer.isError === true })
  }
}
