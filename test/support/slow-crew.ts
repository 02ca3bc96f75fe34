import {
  type Agent,
  createAgent,
  type Message,
  type ModelProvider,
  type SessionStore,
} from '../../src/index.js'
import { call, plainAnswer } from './manual-model.js'
import type { SlowPlace } from './slow-place.js'
import { tool } from './tools.js'

type ToolCall = ReturnType<typeof call>

/** The agent's answers in order: it looks and pays, asks its sub-agent, which pays, and pays again. */
const above: readonly ToolCall[][] = [
  [call('l0', 'look'), call('p0', 'pay', { text: 'first' })],
  [call('r1', 'payer', { task: 'Pay.' })],
  [call('p2', 'pay', { text: 'last' })],
]
const below: readonly ToolCall[][] = [[call('c0', 'pay', { text: 'below' })]]

/** The payments of a run with all of its answers. */
export const payments = ['first', 'below', 'last'] as const

/** A process that shares a remote store with others. After a kill, its pending operations never complete. */
export class SlowProcess {
  readonly agent: Agent
  readonly #place: SlowPlace
  readonly #paid: string[]
  #isAlive = true

  /** `paid` collects its payments. */
  constructor(place: SlowPlace, paid: string[]) {
    this.#place = place
    this.#paid = paid
    const { clock } = place
    const store = this.#whileAlive(place.open())
    const pay = tool('pay', ({ text }) => this.#pay(String(text)), { needsApproval: true })
    const look = tool('look', () => this.#alive(place.way().then(() => 'seen')), { readOnly: true })
    const payer = createAgent({ model: this.#model(below, 'It is paid.'), clock, tools: [pay] })
    const tools = [look, pay, payer.asTool({ name: 'payer', description: 'Pays.' }) as never]
    this.agent = createAgent({ model: this.#model(above, 'Done.'), clock, store, tools })
  }

  kill(): void {
    this.#isAlive = false
  }

  #alive<Value>(promise: Promise<Value>): Promise<Value> {
    return this.#isAlive ? promise.finally(() => (this.#isAlive ? undefined : never)) : never
  }

  async #pay(text: string): Promise<string> {
    if (this.#isAlive) this.#paid.push(text)
    await this.#alive(this.#place.way())
    return `paid ${text}`
  }

  /** Selects its answer by the transcript, so that a repeated request gets the same answer. */
  #model(answers: readonly ToolCall[][], last: string): ModelProvider {
    return {
      provider: 'manual',
      model: 'manual-1',
      request: async ({ messages }, { signal }) => {
        await this.#alive(Promise.race([this.#place.way(), aborted(signal)]))
        const texts = messages.filter(({ role }: Message) => role === 'assistant').length
        const toolCalls = answers[texts] ?? []
        return {
          ...plainAnswer,
          text: toolCalls.length === 0 ? last : '',
          toolCalls,
          finishReason: toolCalls.length === 0 ? 'stop' : 'tool_calls',
        }
      },
    }
  }

  #whileAlive(store: SessionStore): SessionStore {
    const alive = (value: unknown): unknown => {
      if (typeof value === 'function')
        return (...args: unknown[]) =>
          this.#isAlive ? this.#alive((value as (...all: unknown[]) => Promise<unknown>)(...args)) : never
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, alive(inner)]))
    }
    return alive(store) as SessionStore
  }
}

const never = new Promise<never>(() => undefined)

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })
}
