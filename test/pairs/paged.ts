import {
  type Agent,
  runSession,
  type RunSessionOptions,
  type SessionAnswer,
  type SessionResult,
  StatewrightError,
} from '../../src/index.js'
import { findClientId } from '../../src/core/sessions/find-turn.js'
import { chatHandler } from '../../src/ui/index.js'
import { findCallReference } from '../../src/web/approval-id.js'
import type { Cell } from './cell.js'

interface Part {
  type: string
  state?: string
  toolCallId?: string
  approval?: { id: string }
}

interface PageMessage {
  id: string
  role: string
  parts: Part[]
}

/** Error codes for late or repeated answers. */
const tooLate = new Set(['already_answered', 'stale_answer', 'unknown_call'])

/**
 * A chat page that starts a cell's run. Its connection breaks often, so it sends each request twice and
 * repeats it later.
 */
export class Page {
  readonly #cell: Cell
  readonly #broken: string[]
  readonly #sent: object[]

  constructor(cell: Cell, message: string, broken: string[]) {
    this.#cell = cell
    this.#broken = broken
    this.#sent = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: message }] }]
  }

  /**
   * The requests of one process, up to the next wait. `runSession` sends the answers that a page cannot send.
   */
  async call(agent: Agent, { answers = [], at, ...options }: RunSessionOptions): Promise<SessionResult> {
    const handler = chatHandler({ agent, authorize: 'none', onError: () => undefined })
    await this.#resend(agent, handler)
    const message = answers.length > 0 ? await readLast(handler) : undefined
    const isSent = new Set<SessionAnswer>()
    const parts = message?.parts.flatMap((part) => {
      const same = answers.filter((answer) => toAnswered(part, answer))
      for (const answer of same) isSent.add(answer)
      return same.slice(0, 1).map((answer) => toAnswered(part, answer))
    })
    if (message && parts && parts.length > 0) {
      const answered = { ...message, parts }
      this.#sent.push(answered)
      await Promise.all([this.#post(handler, answered), this.#post(handler, answered)])
    }
    const others = answers.filter((answer) => !isSent.has(answer))
    const { input: _input, ...rest } = options
    for (;;) {
      try {
        return await runSession(agent, {
          ...rest,
          ...(others.length > 0 && { answers: others, ...(at !== undefined && isSent.size === 0 && { at }) }),
        })
      } catch (error) {
        // The page's process may still hold the session for a moment.
        if (!(error instanceof StatewrightError) || error.code !== 'session_busy') throw error
        await new Promise((resolve) => setTimeout(resolve, 2))
      }
    }
  }

  /** Repeats all requests of the page. They have no effect, except that the first message starts the run. */
  async #resend(agent: Agent, handler: Handler): Promise<void> {
    const [first, ...others] = this.#sent as [object]
    await Promise.all([this.#post(handler, first), this.#post(handler, first)])
    const before = await agent.replay('chaos')
    for (const message of others) await this.#post(handler, message)
    const { run, messages } = await agent.replay('chaos')
    const times = messages.filter((one) => findClientId(one) === 'u1').length
    if (times > 1) this.#broken.push(`the message of the page is in the log ${times} times`)
    if (this.#cell.plan.moments.length > 0 || this.#cell.messages.length > 0) return
    const [stood, stands] = [before.run, run].map((one) => JSON.stringify([one?.state, one?.pending]))
    if (stood !== stands) this.#broken.push(`an old answer of the page leads from ${stood} to ${stands}`)
  }

  async #post(handler: Handler, message: object): Promise<void> {
    const response = await handler(toRequest('', JSON.stringify({ id: 'chaos', messages: [message] })))
    const text = await response.text()
    if (response.ok) return
    const { error } = JSON.parse(text) as { error: { code: string } }
    if (message === this.#sent[0] || !tooLate.has(error.code))
      this.#broken.push(`the page got ${response.status}: ${text}`)
  }
}

type Handler = ReturnType<typeof chatHandler>

const toRequest = (path: string, body?: string): Request =>
  new Request(`http://page.test/api/chat${path}`, {
    headers: { 'content-type': 'application/json' },
    ...(body !== undefined && { method: 'POST', body }),
  })

async function readLast(handler: Handler): Promise<PageMessage | undefined> {
  const messages = (await (await handler(toRequest('/chaos'))).json()) as PageMessage[]
  return messages.findLast(({ role }) => role === 'assistant')
}

/** The part with this answer. Undefined if the answer is for another call or the page cannot send it. */
function toAnswered(part: Part, answer: SessionAnswer): object | undefined {
  if (answer.type === 'approve' || answer.type === 'reject') {
    if (part.state !== 'approval-requested' || part.approval === undefined) return undefined
    if (findCallReference(part.approval.id)?.callId !== answer.callId) return undefined
    if (answer.type === 'approve' && (answer.editedInput !== undefined || answer.grant)) return undefined
    const approved = answer.type === 'approve'
    const reason = answer.type === 'reject' ? { reason: answer.why } : {}
    return { ...part, state: 'approval-responded', approval: { ...part.approval, approved, ...reason } }
  }
  if (answer.type !== 'toolOutput' || typeof answer.value !== 'string') return undefined
  if (part.state !== 'input-available' || part.toolCallId !== answer.callId) return undefined
  return { ...part, state: 'output-available', output: answer.value }
}
