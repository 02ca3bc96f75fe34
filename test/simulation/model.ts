import {
  type ModelProvider,
  type ModelRequest,
  type ModelRequestOptions,
  ModelError,
} from '../../src/core/models/provider.js'
import { findHistoryProblem } from '../../src/testing/agent/invariants/transcript-rules.js'
import type { ModelResponse } from '../../machines/agent/model-response.js'
import { drawOf } from './chance.js'
import type { Faults } from './faults.js'
import type { ModelFault, Plan } from './plan.js'
import type { SharedStore } from './shared-store.js'
import type { Life, World } from './world.js'

const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 0, reasoningTokens: 0 }

const plain: ModelResponse = {
  text: '',
  reasoning: '',
  refusal: null,
  toolCalls: [],
  finishReason: 'stop',
  complete: true,
  usage,
  model: 'sim-1',
}

/** The maximum number of tool-call answers before the final answer. */
const mostSteps = 3

/** The model of one process life. Its answers depend on the seed and the conversation. */
export function createModel(
  world: World,
  life: Life,
  { plan, faults, shared }: { plan: Plan; faults: Faults; shared: SharedStore },
): ModelProvider {
  const request = (
    modelRequest: ModelRequest,
    { signal, onSent, onDelta, onActivity }: ModelRequestOptions,
  ): Promise<ModelResponse> => {
    if (!life.isAlive) return new Promise(() => undefined)
    const strikes = faults.strike('request', life)
    strikes('before')
    if (!life.isAlive) return new Promise(() => undefined)
    const session = findSession(modelRequest)
    const problem = findHistoryProblem(modelRequest.messages)
    if (problem !== null)
      world.break(`A request for ${session} has a history that no strict provider takes: ${problem}`)
    checkLimits(world, life, { plan, shared, session })
    const fault = faults.nextModelFault()
    world.tell(life.name, `asks the model for ${session}`)
    onSent?.()
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        world.tell(life.name, `gets ${fault === null ? 'an answer' : `no answer: ${fault}`} for ${session}`)
        if (fault === null || fault === 'silence') resolve(answer(plan, session, modelRequest))
        else reject(failure(fault))
      }
      const ms = world.between('model', 200, 4000)
      if (fault === 'cut' || (fault === null && modelRequest.stream))
        world.after(ms / 2, life, () => {
          if (signal.aborted) return
          onActivity()
          onDelta('Well', '')
        })
      // The run times out a silent provider.
      const due = fault === 'silence' ? world.after(700_000, life, settle) : world.after(ms, life, settle)
      signal.addEventListener('abort', () => {
        world.forget(due)
        reject(signal.reason as Error)
      })
      strikes('after')
    })
  }
  return { provider: 'simulated', model: 'sim-1', request }
}

/** The session of a request, from its first message. */
function findSession({ messages }: ModelRequest): string {
  const text = messages.find(({ role }) => role === 'user')?.content
  return /session (\S+)\./.exec(typeof text === 'string' ? text : '')?.[1] ?? 'one'
}

/** Checks that the lease owner's logged spending is below the limits. */
function checkLimits(
  world: World,
  life: Life,
  { plan, shared, session }: { plan: Plan; shared: SharedStore; session: string },
): void {
  if (shared.grantOf(session)?.life !== life.name) return
  const { steps, tokens } = shared.view(session)
  const { maxSteps, tokenBudget } = plan.agent
  if (steps >= maxSteps) world.break(`${session} asks the model after ${steps} steps, of ${maxSteps}.`)
  if (tokenBudget > 0 && tokens >= tokenBudget)
    world.break(`${session} asks the model after ${tokens} tokens, of ${tokenBudget}.`)
}

/** Its answer, deterministic for the same request. */
function answer({ seed, agent }: Plan, session: string, { messages }: ModelRequest): ModelResponse {
  const turn = messages.filter(({ role }) => role === 'assistant').length
  const since = messages.findLastIndex(({ role }) => role === 'user')
  const steps = messages.slice(since).filter(({ role }) => role === 'assistant').length
  const isChild = session.startsWith('child-')
  const draw = (what: string, i = 0): number => drawOf(seed, session, turn, what, i)
  if (steps >= mostSteps || draw('ends') < (steps === 0 ? 0.1 : 0.35))
    return { ...plain, text: `Done with ${session}.` }
  const naps = agent.naps ? ['nap', 'nap'] : []
  const names = isChild
    ? ['look', 'send', 'book', ...naps]
    : ['look', 'pay', 'pay', 'send', 'send', 'book', ...(agent.research ? ['research'] : []), ...naps]
  const calls = 1 + Math.floor(draw('calls') * 3)
  // May repeat a call with the same id and arguments.
  const number = draw('again') < 0.3 ? 0 : turn
  return {
    ...plain,
    finishReason: 'tool_calls',
    toolCalls: Array.from({ length: calls }, (_, i) => ({
      id: `c${i}`,
      type: 'function' as const,
      function: {
        name: names[Math.floor(draw('tool', i) * names.length)] ?? 'look',
        arguments: JSON.stringify({ n: number * 10 + i }),
      },
    })),
  }
}

function failure(how: Exclude<ModelFault, 'silence'>): ModelError {
  switch (how) {
    case '503':
      return new ModelError({ kind: 'transient', code: 'http_503', message: 'Overloaded.', status: 503 })
    case '429':
      return new ModelError({
        kind: 'rate_limit',
        code: 'http_429',
        message: 'Too many.',
        status: 429,
        retryAfterMs: 3000,
      })
    case '429 for long':
      return new ModelError({
        kind: 'rate_limit',
        code: 'http_429',
        message: 'Too many.',
        status: 429,
        retryAfterMs: 50_000,
      })
    case 'cut':
      return new ModelError({ kind: 'transient', code: 'connection', message: 'Reset.', partialText: 'Well' })
    default:
      return new ModelError({ kind: 'fatal', code: 'http_400', message: 'A bad request.', status: 400 })
  }
}
