import { formatCount } from '../../core/format/format-words.js'
import { expectTrue } from '../check-assertions.js'
import {
  type AgentCheckSpec,
  type AgentChecks,
  type AgentNeed,
  callOf,
  cancelInCall,
  describeEnd,
  describeRun,
  expectRequests,
  NotAsked,
  toolOf,
  turns,
  endOf,
  expectTold,
  say,
} from './agent-check.js'
import { type AgentScene, type Behavior, hang, nextTask, type SayOptions, textsOf } from './agent-scene.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { type Script, tokensOfTurn } from './scripted-model.js'

const cancel = (
  title: string,
  run: (scene: AgentScene, controller: AbortController) => Promise<RunResult>,
  needs: readonly AgentNeed[] = [],
): AgentCheckSpec => ({
  title,
  needs,
  async run(scene) {
    const result = await run(scene, new AbortController())
    const [requests, calls] = [scene.requests.length, scene.executions.length]
    await nextTask(10)
    const end = describeEnd(result)
    expectTrue(scene.requests.length === requests, `a request was made after the end (${end})`)
    expectTrue(scene.executions.length === calls, `a call started after the end (${end})`)
    expectTrue(result.state === 'CANCELLED', `it ended ${end}`)
    return describeRun(scene, result)
  },
})

const inCall = (title: string, then: Behavior): AgentCheckSpec =>
  cancel(
    title,
    async (scene, controller) => {
      const result = await cancelInCall(scene, then, controller)
      const { length } = scene.executions
      expectTrue(length === 1, `${formatCount(length, 'call was', 'calls were')} executed`)
      expectRequests(scene, 1, result, 1)
      return result
    },
    ['tool'],
  )

async function cancelEarly(scene: AgentScene, controller: AbortController): Promise<RunResult> {
  controller.abort()
  const result = await scene.play(turns(), {}, { signal: controller.signal })
  expectRequests(scene, 0, result)
  return result
}

async function cancelInAnswer(scene: AgentScene, controller: AbortController): Promise<RunResult> {
  const process = scene.open(turns(), { model: [{ at: 1, fault: 'stalled' }] })
  const run = process.start(scene.input, { signal: controller.signal })
  await process.untilFault()
  controller.abort()
  return run.result
}

async function cancelInRetry(scene: AgentScene, controller: AbortController): Promise<RunResult> {
  const process = scene.open(turns(), { model: [{ at: 1, fault: 'overloaded' }] })
  if (process.agent.config.retry.maxAttempts <= 1) throw new NotAsked('the agent does not retry')
  const run = process.start(scene.input, { signal: controller.signal })
  // Cancels immediately, because some agents retry after a millisecond or less.
  run.events$.subscribe({
    next: ({ type }) => {
      if (type === 'retry') controller.abort()
    },
    error: () => undefined,
  })
  const result = await run.result
  expectRequests(scene, 1, result, 1)
  return result
}

async function keepResult(scene: AgentScene, controller: AbortController): Promise<RunResult> {
  const { name, input } = toolOf(scene)
  const calls = ['paid', 'lost'].map((id, n) => ({ name, input: input(n), id }))
  scene.behave = async (execution, signal) => {
    if (scene.executions.length === 1) return 'Paid for.'
    // By now, the first call has its result.
    await nextTask(10)
    controller.abort()
    return hang(execution, signal)
  }
  const result = await scene.play(turns({ calls }), {}, { signal: controller.signal })
  expectTrue(scene.executions.length === 2, `${scene.executions.length} of 2 calls were executed`)
  const before = scene.requests.length
  await scene.process.say('Again.')
  const results = textsOf(scene.requests[before]?.messages ?? [], 'tool')
  const isKept = results.some((text) => text.includes('Paid for.'))
  expectTrue(isKept, `the next request has the results ${JSON.stringify(results)}`)
  return result
}

export const cancelChecks: AgentChecks = {
  before: cancel('With a signal that is already aborted, no request is made', cancelEarly),
  'in-answer': cancel('While the model is stalled partway through an answer', cancelInAnswer),
  'in-call': inCall('During a call that respects the signal', hang),
  'in-deaf-call': inCall('During a call that never ends', () => new Promise(() => undefined)),
  swallowed: inCall('During a call that ignores the abort and returns', () => 'The text.'),
  'in-retry': cancel('While a retry waits', cancelInRetry),
  'result-kept': cancel('If one of two calls has finished, its result is in the next request', keepResult, [
    'tool',
  ]),
}

/** After this many requests, the script answers. A run that reaches this number was not stopped by anything. */
const cap = 300

const capped =
  (script: Script): Script =>
  (at, request) =>
    at > cap ? say("The script's cap.") : script(at, request)

const workOn = (scene: AgentScene, limits: SayOptions['limits'] = {}): Promise<RunResult> => {
  const script = capped((at) => ({ ...callOf(toolOf(scene), at), text: `Working on ${at}.` }))
  return scene.play(script, {}, { limits })
}

/** Expects that the run has stopped by itself, which it reports. */
function expectStopped(scene: AgentScene, result: RunResult, advice = ''): string {
  const requests = formatCount(scene.requests.length, 'request')
  expectTrue(scene.requests.length < cap, `${requests}: nothing stopped it${advice} (${describeEnd(result)})`)
  expectTold(result, ` after ${requests}`)
  return describeRun(scene, result)
}

const limit = (title: string, run: AgentCheckSpec['run']): AgentCheckSpec => ({ title, needs: ['tool'], run })

/** Expects that the run makes no more requests than its limits allow, and reports the limit. */
const bounded = (title: string, limits: SayOptions['limits'], hasConclusion: boolean): AgentCheckSpec =>
  limit(title, async (scene) => {
    const result = await workOn(scene, limits)
    const isConcluding = hasConclusion && scene.process.agent.config.limits.onLimit === 'conclude'
    expectRequests(scene, isConcluding ? 4 : 3, result)
    expectTold(result)
    return describeRun(scene, result)
  })

const tokensOfStep = tokensOfTurn.input + tokensOfTurn.output

export const limitChecks: AgentChecks = {
  steps: bounded('A limit of 3 steps allows 3 requests and is reported', { maxSteps: 3 }, true),
  'own-limit': limit("The agent's limits stop a model that calls tools forever", async (scene) =>
    expectStopped(scene, await workOn(scene), '. Set limits.maxSteps'),
  ),
  'token-budget': bounded(
    'A budget of 2.5 steps allows 3 requests and is reported',
    { tokenBudget: tokensOfStep * 2.5 },
    false,
  ),
  'paid-usage': limit('Usage before a limit is counted', async (scene) => {
    const result = await workOn(scene, { maxSteps: 2 })
    const used = result.usage.totalTokens
    const due = tokensOfStep * scene.requests.length
    expectTrue(used === due, `${used} tokens are counted, but ${due} were used (${describeEnd(result)})`)
    return `${used} tokens, ${endOf(result)}`
  }),
}

const loops = (
  title: string,
  script: (scene: AgentScene) => Script,
  behave: Behavior,
  needs: readonly AgentNeed[] = ['tool'],
): AgentCheckSpec => ({
  title,
  needs,
  async run(scene) {
    scene.behave = behave
    return `stopped after ${expectStopped(scene, await scene.play(capped(script(scene))))}`
  },
})

const fail: Behavior = () => {
  throw new Error('No such file.')
}

export const loopChecks: AgentChecks = {
  'same-call': loops(
    'The same call with the same result',
    (scene) => () => callOf(toolOf(scene)),
    () => 'Nothing new.',
  ),
  'two-calls': loops(
    'Two calls in turn',
    (scene) => (at) => callOf(toolOf(scene), at % 2),
    ({ input }) => `The result of ${JSON.stringify(input)}.`,
    ['tool', 'variety'],
  ),
  failing: loops('A call that fails every time', (scene) => () => callOf(toolOf(scene)), fail),
  'new-arguments': loops(
    'A different call every time, with the same result',
    (scene) => (at) => callOf(toolOf(scene), at),
    () => 'Nothing found.',
    ['tool', 'variety'],
  ),
  'no-such-tool': loops(
    'A tool that does not exist',
    () => () => ({ calls: [{ name: 'no_such_tool' }] }),
    () => '',
    [],
  ),
}
