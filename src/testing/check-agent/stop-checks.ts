import { formatCount } from '../../core/format/format-words.js'
import { expectTrue } from '../check-assertions.js'
import {
  type AgentCheckSpec,
  callOf,
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
import { type AgentProcess, type AgentScene, type Behavior, hang, nextTask, textsOf } from './agent-scene.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { type Script, tokensOfTurn } from './scripted-model.js'

const cancel = (
  name: string,
  title: string,
  needsTool: boolean,
  run: (scene: AgentScene, controller: AbortController) => Promise<RunResult>,
): AgentCheckSpec => ({
  class: 'cancel',
  name,
  title,
  needs: needsTool ? ['tool'] : [],
  async run(scene) {
    const controller = new AbortController()
    const result = await run(scene, controller)
    const [requests, calls] = [scene.requests.length, scene.executions.length]
    await nextTask(10)
    expectTrue(
      scene.requests.length === requests,
      `a request was made after the end (${describeEnd(result)})`,
    )
    expectTrue(scene.executions.length === calls, `a call started after the end (${describeEnd(result)})`)
    expectTrue(result.state === 'CANCELLED', `it ended ${describeEnd(result)}`)
    return describeRun(scene, result)
  },
})

/** Cancels from within a call. No further request may follow. */
const inCall = (name: string, title: string, then: Behavior): AgentCheckSpec =>
  cancel(name, title, true, async (scene, controller) => {
    scene.behave = (execution, signal) => {
      controller.abort()
      return then(execution, signal)
    }
    const script: Script = turns(callOf(toolOf(scene)))
    const result = await scene.open(script).say(scene.input, { signal: controller.signal })
    expectTrue(
      scene.executions.length === 1,
      `${formatCount(scene.executions.length, 'call was', 'calls were')} executed`,
    )
    expectRequests(scene, 1, result, 1)
    return result
  })

async function keepResult(scene: AgentScene, controller: AbortController): Promise<RunResult> {
  const tool = toolOf(scene)
  const { name } = tool
  const process: AgentProcess = scene.open(
    turns({
      calls: [
        { name, input: tool.input(0), id: 'paid' },
        { name, input: tool.input(1), id: 'lost' },
      ],
    }),
  )
  scene.behave = async (execution, signal) => {
    if (scene.executions.length === 1) return 'Paid for.'
    // By now, the first call has its result.
    await nextTask(10)
    controller.abort()
    return hang(execution, signal)
  }
  const result = await process.say(scene.input, { signal: controller.signal })
  expectTrue(scene.executions.length === 2, `${scene.executions.length} of 2 calls were executed`)
  const before = scene.requests.length
  await process.say('Again.')
  const results = textsOf(scene.requests[before]?.messages ?? [], 'tool')
  expectTrue(
    results.some((text) => text.includes('Paid for.')),
    `the next request has the results ${JSON.stringify(results)}`,
  )
  return result
}

export const cancelChecks: readonly AgentCheckSpec[] = [
  cancel(
    'before',
    'With a signal that is already aborted, no request is made',
    false,
    async (scene, controller) => {
      controller.abort()
      const result = await scene.open(turns()).say(scene.input, { signal: controller.signal })
      expectRequests(scene, 0, result)
      return result
    },
  ),
  cancel(
    'in-answer',
    'While the model is stalled partway through an answer',
    false,
    async (scene, controller) => {
      const process = scene.open(turns(), { model: [{ at: 1, fault: 'stalled' }] })
      const run = process.start(scene.input, { signal: controller.signal })
      await process.untilFault()
      controller.abort()
      return run.result
    },
  ),
  inCall('in-call', 'During a call that respects the signal', hang),
  inCall('in-deaf-call', 'During a call that never ends', () => new Promise(() => undefined)),
  inCall('swallowed', 'During a call that ignores the abort and returns', () => 'The text.'),
  cancel('in-retry', 'While a retry waits', false, async (scene, controller) => {
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
  }),
  cancel(
    'result-kept',
    'If one of two calls has finished, its result is in the next request',
    true,
    keepResult,
  ),
]

/** After this many requests, the script answers. A run that reaches this number was not stopped by anything. */
const cap = 300

const capped =
  (script: Script): Script =>
  (at, request) =>
    at > cap ? say("The script's cap.") : script(at, request)

const restless = (scene: AgentScene): Script =>
  capped((at) => ({ ...callOf(toolOf(scene), at), text: `Working on ${at}.` }))

const limits = (rest: Omit<AgentCheckSpec, 'class' | 'needs'>): AgentCheckSpec => ({
  class: 'limits',
  needs: ['tool'],
  ...rest,
})

const tokensOfStep = tokensOfTurn.input + tokensOfTurn.output

export const limitChecks: readonly AgentCheckSpec[] = [
  limits({
    name: 'steps',
    title: 'A limit of 3 steps allows 3 requests and is reported',
    async run(scene) {
      const process = scene.open(restless(scene))
      // With `onLimit: 'conclude'`, one more request is allowed.
      const most = process.agent.config.limits.onLimit === 'conclude' ? 4 : 3
      const result = await process.say(scene.input, { limits: { maxSteps: 3 } })
      expectRequests(scene, most, result)
      expectTold(result)
      return describeRun(scene, result)
    },
  }),
  limits({
    name: 'own-limit',
    title: "The agent's limits stop a model that calls tools forever",
    async run(scene) {
      const result = await scene.open(restless(scene)).say(scene.input)
      const { length } = scene.requests
      expectTrue(
        length < cap,
        `${formatCount(length, 'request')}: nothing stopped it. Set limits.maxSteps (${describeEnd(result)})`,
      )
      expectTold(result, ` after ${formatCount(length, 'request')}`)
      return describeRun(scene, result)
    },
  }),
  limits({
    name: 'token-budget',
    title: 'A budget of 2.5 steps allows 3 requests and is reported',
    async run(scene) {
      const process = scene.open(restless(scene))
      const result = await process.say(scene.input, { limits: { tokenBudget: tokensOfStep * 2.5 } })
      expectRequests(scene, 3, result)
      expectTold(result)
      return describeRun(scene, result)
    },
  }),
  limits({
    name: 'paid-usage',
    title: 'Usage before a limit is counted',
    async run(scene) {
      const result = await scene.open(restless(scene)).say(scene.input, { limits: { maxSteps: 2 } })
      const used = result.usage.totalTokens
      const due = tokensOfStep * scene.requests.length
      expectTrue(used === due, `${used} tokens are counted, but ${due} were used (${describeEnd(result)})`)
      return `${used} tokens, ${endOf(result)}`
    },
  }),
]

const loops = (
  name: string,
  title: string,
  script: (scene: AgentScene) => Script,
  behave: Behavior,
  needs: AgentCheckSpec['needs'] = ['tool'],
): AgentCheckSpec => ({
  class: 'loops',
  name,
  title,
  needs,
  async run(scene) {
    scene.behave = behave
    const result = await scene.open(capped(script(scene))).say(scene.input)
    const { length } = scene.requests
    expectTrue(length < cap, `${formatCount(length, 'request')}: nothing stopped it (${describeEnd(result)})`)
    expectTold(result, ` after ${formatCount(length, 'request')}`)
    return `stopped after ${describeRun(scene, result)}`
  },
})

export const loopChecks: readonly AgentCheckSpec[] = [
  loops(
    'same-call',
    'The same call with the same result',
    (scene) => () => callOf(toolOf(scene)),
    () => 'Nothing new.',
  ),
  loops(
    'two-calls',
    'Two calls in turn',
    (scene) => (at) => callOf(toolOf(scene), at % 2),
    ({ input }) => `The result of ${JSON.stringify(input)}.`,
    ['tool', 'variety'],
  ),
  loops(
    'failing',
    'A call that fails every time',
    (scene) => () => callOf(toolOf(scene)),
    () => {
      throw new Error('No such file.')
    },
  ),
  loops(
    'new-arguments',
    'A different call every time, with the same result',
    (scene) => (at) => callOf(toolOf(scene), at),
    () => 'Nothing found.',
    ['tool', 'variety'],
  ),
  loops(
    'no-such-tool',
    'A tool that does not exist',
    () => () => ({ calls: [{ name: 'no_such_tool' }] }),
    () => '',
    [],
  ),
]
