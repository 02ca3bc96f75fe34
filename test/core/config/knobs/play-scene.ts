import { SimulatedClock } from 'xstate'
import type { ModelFailure, ModelResponse } from '../../../../machines/agent/model-response.js'
import type { Message } from '../../../../machines/agent/messages.js'
import {
  type Agent,
  type AgentConfigInput,
  type AgentEvent,
  type AgentOptions,
  createAgent,
  createSession,
  defineTool,
  type Run,
  type Tool,
} from '../../../../src/index.js'
import {
  ModelError,
  type ModelProvider,
  type ModelRequest,
  type ModelRequestOptions,
} from '../../../../src/core/models/provider.js'

/** The model's behavior for one request. Without calls and text it answers `Done.` */
export interface Turn {
  text?: string
  /** The answer's calls: tool and arguments. */
  calls?: readonly (readonly [tool: string, input?: object])[]
  finish?: string
  /** Token usage. Null if the provider does not report it. */
  usage?: { input: number; output: number } | null
  isCut?: boolean
  fails?: Partial<ModelFailure>
  /** Runs before the answer: delays it or simulates other provider behavior. */
  meanwhile?: (options: ModelRequestOptions, clock: SimulatedClock) => Promise<void>
}

/** A full run definition without the setting under test. */
export interface Scene {
  /** One turn per request. After the last turn the model answers `Done.` */
  turns: readonly Turn[]
  tools?: (clock: SimulatedClock) => readonly Tool[]
  /** Other settings that the scene needs. */
  config?: AgentConfigInput
  options?: (clock: SimulatedClock) => Partial<AgentOptions>
  inputs?: readonly string[]
  /** Plays the scene in a different way, for example with several processes. */
  act?: (make: () => Agent, play: Playing) => Promise<Run>
}

/** The part of the outcome that the tests compare. */
export interface Outcome {
  state: string
  reason: string
  steps: number
  /** Duration in milliseconds on the scene's clock. */
  took: number
  requests: object[]
  messages: Message[]
  events: AgentEvent[]
}

export interface Playing {
  requests: ModelRequest[]
  clock: SimulatedClock
}

/** A tool that accepts any object. */
export function createTool(
  name: string,
  execute: (input: Record<string, unknown>) => unknown,
  traits: Partial<Tool> = {},
): Tool {
  const input = { type: 'object' as const }
  const tool = defineTool({ name, description: `The tool ${name}.`, input, execute: execute as never })
  return { ...(tool as Tool), ...traits }
}

/** Runs all ready work. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 3; i += 1) {
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
  }
}

/** Advances the clock and runs due timers. */
export async function pass(clock: SimulatedClock, ms: number): Promise<void> {
  await settle()
  clock.increment(ms)
  await settle()
}

/** Plays a scene once under these settings. */
export async function playScene(scene: Scene, config: AgentConfigInput): Promise<Outcome> {
  const clock = new SimulatedClock()
  const playing: Playing = { requests: [], clock }
  const events: AgentEvent[] = []
  const make = (): Agent =>
    createAgent({
      model: playModel(scene.turns, playing),
      clock,
      tools: scene.tools?.(clock) ?? [],
      ...config,
      ...scene.options?.(clock),
    })
  const session = createSession()
  const begin = async (input: string, agent: Agent): Promise<Run> => {
    const run = agent.run(input, { session })
    listen(run)
    await run.result.catch(() => undefined)
    return run
  }
  const listen = (run: Run): void => {
    run.events$.subscribe({
      next: (event) => {
        events.push(event)
        if (event.type === 'retry') queueMicrotask(() => clock.increment(event.delayMs))
      },
      error: () => undefined,
    })
  }
  let run: Run | undefined
  if (scene.act) {
    run = await scene.act(make, playing)
    listen(run)
  } else {
    const agent = make()
    for (const input of scene.inputs ?? ['Go.']) run = await begin(input, agent)
  }
  const result = await run?.result.catch((error: { code: string }) => ({
    state: 'REFUSED',
    reason: error.code,
    steps: 0,
    messages: [],
  }))
  if (!result) throw new Error('The scene has no run.')
  const { state, reason, steps, messages } = result
  return {
    state,
    reason,
    steps,
    took: clock.now(),
    requests: playing.requests.map(({ messages: sent, ...rest }) => ({ ...rest, messages: [...sent] })),
    messages: [...messages],
    events,
  }
}

/** All observable output of a run, without generated ids. */
export function describeOutcome({ state, reason, steps, took, ...rest }: Outcome): string {
  const shown = JSON.stringify({ state, reason, steps, took, ...rest })
  return shown.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27,}/g, 'id')
}

const plainAnswer: ModelResponse = {
  text: '',
  reasoning: '',
  refusal: null,
  toolCalls: [],
  finishReason: 'stop',
  complete: true,
  usage: null,
  model: 'played-1',
}

function playModel(turns: readonly Turn[], { requests, clock }: Playing): ModelProvider {
  return {
    provider: 'played',
    model: 'played-1',
    request: async (request, options) => {
      const number = requests.push(request)
      const turn = turns[number - 1] ?? {}
      await turn.meanwhile?.(options, clock)
      if (turn.fails) {
        const failure = { kind: 'transient', code: 'http_503', message: 'It is down.' } as const
        throw new ModelError({ ...failure, ...turn.fails })
      }
      const { calls = [], text = calls.length > 0 ? '' : 'Done.', usage = { input: 10, output: 5 } } = turn
      const counts = usage && {
        inputTokens: usage.input,
        outputTokens: usage.output,
        totalTokens: usage.input + usage.output,
        cachedInputTokens: usage.input >= 4 ? 4 : 0,
        reasoningTokens: 0,
      }
      return {
        ...plainAnswer,
        text,
        usage: counts,
        complete: turn.isCut !== true,
        finishReason: turn.isCut ? null : (turn.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')),
        toolCalls: calls.map(([name, input = {}], i) => ({
          id: `call_${number}_${i + 1}`,
          type: 'function' as const,
          function: { name, arguments: JSON.stringify(input) },
        })),
      }
    },
  }
}
