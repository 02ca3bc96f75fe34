import { createAgent } from '../../src/core/agent/agent.js'
import type { Clock } from '../../src/core/base/clock.js'
import { sleepUntil } from '../../src/core/tools/tool-outcomes.js'
import { defineTool } from '../../src/core/tools/define-tool.js'
import type { Tool, ToolExecution } from '../../src/core/tools/tool.js'
import type { AgentOptions } from '../../src/core/agent/agent-options.js'
import type { Faults } from './faults.js'
import type { SharedStore } from './shared-store.js'
import type { Life, World } from './world.js'

/** The effects in the world, by the key passed on: `run.message:call`. */
export class Effects {
  readonly #world: World
  readonly #shared: SharedStore
  readonly #done = new Map<string, number>()
  /** The payments that grants let run, by session. */
  readonly #granted = new Map<string, Set<string>>()
  /** How often people approved a call, by session, message and call. */
  readonly #allowed = new Map<string, { times: number; again: number; input: Set<string> }>()

  constructor(world: World, shared: SharedStore) {
    this.#world = world
    this.#shared = shared
  }

  /** A person approves a call. `isAgain` means that it was running when its process died. */
  allow(call: string, { isAgain, input }: { isAgain: boolean; input: string }): void {
    const known = this.#allowed.get(call) ?? { times: 0, again: 0, input: new Set<string>() }
    known.times += 1
    if (isAgain) known.again += 1
    known.input.add(input)
    this.#allowed.set(call, known)
  }

  /** Whether a grant in the log lets the call run. */
  #isGranted(session: string, input: string, key: string): boolean {
    const grants = this.#shared.view(session).findGrants('pay', input)
    if (grants.length === 0) return false
    const granted = this.#granted.get(session) ?? new Set<string>()
    this.#granted.set(session, granted)
    granted.add(key)
    if (grants.every(({ isRevoked }) => isRevoked))
      this.#world.break(`pay ${input} of ${session} runs by a grant that is revoked.`)
    const uses = [...this.#shared.view(session).grants.values()].reduce((sum, grant) => sum + grant.uses, 0)
    if (granted.size > uses)
      this.#world.break(`${granted.size} payments of ${session} run by grants for ${uses} calls.`)
    return true
  }

  happen(
    life: Life,
    name: string,
    input: string,
    execution: Pick<ToolExecution, 'callId' | 'sessionId' | 'idempotencyKey'>,
  ): void {
    const { callId, sessionId, idempotencyKey: key } = execution
    const known = this.#done.get(key) ?? 0
    this.#done.set(key, known + 1)
    this.#world.tell(life.name, `does ${name} ${input} for ${sessionId} (${callId})`)
    const logged = this.#shared.view(sessionId).findCalls(callId, name, input)
    if (logged.length === 0)
      this.#world.break(`${name} ${input} takes effect before the log of ${sessionId} has the call.`)
    if (name === 'look') return
    // A sub-agent's questions go to the people of its parent session.
    const call = `${sessionId.split(':')[0]}|${sessionId.includes(':') ? '/' : ''}${/\.(\d+):/.exec(key)?.[1] ?? ''}:${callId}`
    const allowed = this.#allowed.get(call)
    const isApproved = allowed?.input.has(input) === true && logged.some((one) => one.isApproved)
    if (name === 'pay' && !isApproved && !this.#isGranted(sessionId, input, key)) {
      if (!allowed) this.#world.break(`${name} ${input} of ${sessionId} was allowed by nobody (${call}).`)
      else if (!allowed.input.has(input))
        this.#world.break(
          `${name} ${input} of ${sessionId} was allowed with ${[...allowed.input].join(', ')}.`,
        )
      else this.#world.break(`${name} ${input} takes effect before the log of ${sessionId} has its approval.`)
    }
    // An idempotent effect may repeat, because its key identifies it.
    if (name !== 'book' && known > (allowed?.again ?? 0))
      this.#world.break(`${name} ${input} of ${sessionId} takes effect ${known + 1} times (${call}).`)
  }
}

/** Puts the run to sleep for some minutes of its process's clock. */
export function createNap(world: World, clock: Clock): Tool {
  return defineTool({
    name: 'nap',
    description: 'Waits.',
    input: { type: 'object' },
    readOnly: true,
    polling: true,
    execute: () => sleepUntil(clock.now() + world.between('naps', 90_000, 300_000)),
  }) as Tool
}

export function createTools(
  world: World,
  life: Life,
  {
    effects,
    faults,
    options,
    research,
    nap,
  }: { effects: Effects; faults: Faults; options: AgentOptions; research: boolean; nap: Tool | null },
): Tool[] {
  const tool = (
    name: string,
    traits: Partial<Pick<Tool, 'readOnly' | 'idempotent' | 'needsApproval'>>,
  ): Tool =>
    defineTool({
      ...traits,
      name,
      description: `The tool ${name}.`,
      input: { type: 'object' },
      execute: (fields, execution) => {
        if (!life.isAlive) return new Promise(() => undefined)
        const input = JSON.stringify(fields)
        const strikes = faults.strike('effect', life)
        strikes('before')
        if (!life.isAlive) return new Promise(() => undefined)
        effects.happen(life, name, input, execution)
        strikes('after')
        return new Promise((resolve, reject) => {
          const due = world.after(world.between('tool', 0, 6000), life, () => resolve('done'))
          execution.signal.addEventListener('abort', () => {
            world.forget(due)
            reject(execution.signal.reason as Error)
          })
        })
      },
    }) as Tool
  const own = [
    tool('look', { readOnly: true }),
    tool('pay', { needsApproval: true }),
    tool('send', {}),
    tool('book', { idempotent: true }),
    ...(nap ? [nap] : []),
  ]
  if (!research) return own
  const child = createAgent({ ...options, tools: own.filter(({ name }) => name !== 'pay') } as AgentOptions)
  return [
    ...own,
    child.asTool({
      name: 'research',
      description: 'Looks things up.',
      input: { type: 'object' },
      prompt: () => 'Look it up, for session child-1.',
    }) as Tool,
  ]
}
