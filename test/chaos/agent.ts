import { z } from 'zod'
import {
  type Agent,
  type AgentOptions,
  type Clock,
  createAgent,
  defineGuard,
  defineShield,
  defineTool,
  openaiChat,
  openaiResponses,
  type Run,
  type SessionStore,
  type Tool,
  type ToolExecution,
  handoff,
  toolSearch,
} from '../../src/index.js'
import { createLimiter } from '../../src/fleet/index.js'
import { findAsked } from '../../src/core/tools/tool-outcomes.js'
import { checks } from './checks.js'
import type { Plan } from './plan.js'
import { fetchFrom, type Host, type Provider } from './provider.js'
import { type ToolName, tools } from './tools.js'
import type { World } from './world.js'

/** A chaotic agent's parts, in addition to its plan. */
export interface Parts {
  world: World
  provider: Provider
  host: Host
  /** Identifies its requests at the host. */
  id: string
  store: SessionStore | undefined
  run: () => Run | undefined
  /** The process's clock. Default: the world's clock. */
  clock?: Clock
  /** Settings outside the plan. */
  options?: Partial<AgentOptions>
  /** Called when a tool starts its work. */
  onExecute?: (execution: ToolExecution, tool: string) => void
}

/** The agent of a plan. Only its environment is simulated. */
export function agentOf(plan: Plan, parts: Parts): Agent {
  const { world, store, clock = world, options = {} } = parts
  const model = modelOf(plan, parts)
  const all: Tool[] = [
    ...plan.tools.map((name, i) => toolOf(`tool_${i}`, name, parts)),
    toolOf('pay', plan.tools[0] ?? 'works', parts, plan.needsApproval),
    defineTool({ name: 'pick', description: 'Runs at the client.', input: loose, client: true }) as Tool,
  ]
  if (plan.subAgent) {
    const child = createAgent({ model, tools: all.slice(0, 2), clock, stream: plan.stream })
    all.push(
      child.asTool({
        name: 'research',
        description: 'Looks things up.',
        input: loose,
        prompt: () => 'Look it up.',
        maxSteps: 3,
      }) as Tool,
    )
  }
  const reached = plan.handsOver
    ? [...all, handoff(createAgent({ model, tools: all }), { name: 'billing' })]
    : all
  return createAgent({
    ...configOf(plan),
    ...options,
    limits: { ...configOf(plan).limits, ...options.limits },
    model,
    tools: plan.deferred ? deferAll(reached, plan.deferred) : reached,
    clock,
    instructions: 'Be careful.',
    tokenizer: { count: (text) => Math.ceil(text.length / 4) },
    shields: shieldsOf(plan, world),
    ...(store && { store }),
    ...(plan.guard && { guards: [guardOf(plan.guard, world)] }),
    ...(plan.memory && { memory: memoryOf(plan.memory, world) }),
    ...(plan.structured && {
      output: { schema: z.object({ done: z.boolean() }), mode: 'response_format' as const },
    }),
  }) as Agent
}

function deferAll(all: readonly Tool[], loading: 'append' | 'dispatch'): Tool[] {
  return [
    ...all.map((tool) => ({ ...tool, defer: true as const })),
    toolSearch({ loading, search: () => [] }),
  ]
}

function configOf(plan: Plan): Partial<AgentOptions> {
  return {
    stream: plan.stream,
    interactive: plan.interactive,
    limits: {
      maxSteps: plan.maxSteps,
      timeoutMs: plan.timeoutMs,
      onLimit: plan.conclude ? 'conclude' : 'stop',
    },
    completion: { onMissingEnd: plan.acceptsMissingEnd ? 'accept' : 'retry' },
    ...(plan.window && { context: { window: 30_000, strategy: plan.window } }),
  }
}

function modelOf(plan: Plan, { provider, host, id, world, clock = world }: Parts) {
  const speak = plan.api === 'chat' ? openaiChat : openaiResponses
  return speak({
    model: 'chaos-1',
    baseURL: host.url,
    apiKey: 'none',
    headers: { 'x-chaos': id },
    ...(!plan.overHttp && { fetch: fetchFrom(provider) }),
    ...(plan.limited && {
      limiter: createLimiter({ id: 'chaos', requestsPerMinute: 30, burst: 1 / 30, clock }),
    }),
    ...(plan.hosted && {
      hostedTools: [{ type: 'mcp', server_label: 'zip', require_approval: 'always' }],
    }),
  })
}

const loose = { type: 'object' } as const

function toolOf(
  name: string,
  behaviour: ToolName,
  { world, run, onExecute }: Parts,
  approval: Plan['needsApproval'] = null,
): Tool {
  return defineTool({
    name,
    description: `The tool ${name}.`,
    input: loose,
    readOnly: behaviour === 'works',
    keepsHandle: behaviour === 'keeps a handle and asks a person',
    needsApproval: async () => {
      if (world.calm || approval === null) return name === 'pay'
      return (await checks[approval](world, undefined, name)) as boolean
    },
    execute: (input, execution) => {
      world.moves += 1
      // Continuing from a handle or an answer does not start the tool's work.
      if (execution.handle === undefined && findAsked(execution) === undefined) onExecute?.(execution, name)
      return world.calm ? 'done' : tools[behaviour]({ world, execution, input, run })
    },
  }) as Tool
}

function shieldsOf({ shields }: Plan, world: World): NonNullable<AgentOptions['shields']> {
  return Object.fromEntries(
    Object.entries(shields).map(([point, name]) => [
      point,
      [
        defineShield({
          name: `at-${point}`,
          check: (content, { signal }) =>
            (world.calm ? { action: 'allow' } : checks[name](world, signal, content)) as never,
        }),
      ],
    ]),
  )
}

function guardOf(name: NonNullable<Plan['guard']>, world: World) {
  return defineGuard({
    name: 'watch',
    onHalt: world.below(2) === 0 ? 'error' : 'pause',
    onError: world.below(2) === 0 ? 'halt' : 'ignore',
    verdict: (_, { signal }) =>
      (world.calm || name === 'lets pass' ? undefined : checks[name](world, signal, 'guard')) as never,
  })
}

function memoryOf(name: NonNullable<Plan['memory']>, world: World) {
  return {
    retrieve: async (query: string, { signal }: { signal: AbortSignal }) => {
      if (world.calm) return []
      const found = await checks[name](world, signal, query)
      return (name === 'returns junk' ? found : [{ source: 'notes \ud83d', text: `About ${query}` }]) as never
    },
  }
}
