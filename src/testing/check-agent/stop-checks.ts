import { formatCount } from '../../core/format/format-words.js'
import { expectTrue } from '../check-assertions.js'
import { type AgentCheckSpec, type AgentChecks, check, expectTold } from './agent-check.js'
import { callOf, describeEnd, endOf, hang, nextTask, NotAsked, textsOf } from './agent-scene.js'
import type { AgentScene, Behavior, SayOptions } from './agent-scene.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { say, type Script, type Turn, tokensOfTurn, turns } from './scripted-model.js'

type Cancel = (scene: AgentScene, controller: AbortController) => Promise<RunResult>

const cancel = (title: string, run: Cancel): AgentCheckSpec =>
  check(title, async (scene) => {
    const result = await run(scene, new AbortController())
    const [requests, calls] = [scene.requests.length, scene.executions.length]
    await nextTask(10)
    const end = describeEnd(result)
    expectTrue(scene.requests.length === requests, `a request was made after the end (${end})`)
    expectTrue(scene.executions.length === calls, `a call started after the end (${end})`)
    expectTrue(result.state === 'CANCELLED', `it ended ${end}`)
    return scene.describeRun(result)
  })

const inCall = (title: string, then: Behavior): AgentCheckSpec =>
  cancel(title, async (scene, controller) => {
    const result = await scene.cancelInCall(then, controller)
    const { length } = scene.executions
    expectTrue(length === 1, `${formatCount(length, 'call was', 'calls were')} executed`)
    scene.expectRequests(1, result, 1)
    return result
  })

const cancelEarly: Cancel = async (scene, controller) => {
  controller.abort()
  const result = await scene.play(turns(), {}, { signal: controller.signal })
  scene.expectRequests(0, result)
  return result
}

const cancelInAnswer: Cancel = async (scene, controller) => {
  const process = scene.open(turns(), { model: [{ at: 1, fault: 'stalled' }] })
  const run = process.start(scene.input, { signal: controller.signal })
  await process.untilFault()
  controller.abort()
  return run.result
}

const cancelInRetry: Cancel = async (scene, controller) => {
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
  scene.expectRequests(1, result, 1)
  return result
}

const keepResult: Cancel = async (scene, controller) => {
  const { name, input } = scene.tool
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
  const results = textsOf((await scene.sayAgain()).messages, 'tool')
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
  'result-kept': cancel('If one of two calls has finished, its result is in the next request', keepResult),
}

/** After this many requests, the script answers. A run that reaches this number was not stopped by anything. */
const cap = 300

const capped =
  (script: Script): Script =>
  (at, request) =>
    at > cap ? say("The script's cap.") : script(at, request)

const workOn = (scene: AgentScene, limits: SayOptions['limits'] = {}): Promise<RunResult> => {
  const { tool } = scene
  const script = capped((at) => ({ ...callOf(tool, at), text: `Working on ${at}.` }))
  return scene.play(script, {}, { limits })
}

/** Expects that the run has stopped by itself, which it reports. */
function expectStopped(scene: AgentScene, result: RunResult, advice = ''): string {
  const requests = formatCount(scene.requests.length, 'request')
  expectTrue(scene.requests.length < cap, `${requests}: nothing stopped it${advice} (${describeEnd(result)})`)
  expectTold(result, ` after ${requests}`)
  return scene.describeRun(result)
}

/** Expects that the run makes no more requests than its limits allow, and reports the limit. */
const bounded = (title: string, limits: SayOptions['limits'], hasConclusion: boolean): AgentCheckSpec =>
  check(title, async (scene) => {
    const result = await workOn(scene, limits)
    const isConcluding = hasConclusion && scene.process.agent.config.limits.onLimit === 'conclude'
    scene.expectRequests(isConcluding ? 4 : 3, result)
    expectTold(result)
    return scene.describeRun(result)
  })

const tokensOfStep = tokensOfTurn.input + tokensOfTurn.output

export const limitChecks: AgentChecks = {
  steps: bounded('A limit of 3 steps allows 3 requests and is reported', { maxSteps: 3 }, true),
  'own-limit': check("The agent's limits stop a model that calls tools forever", async (scene) =>
    expectStopped(scene, await workOn(scene), '. Set limits.maxSteps'),
  ),
  'token-budget': bounded(
    'A budget of 2.5 steps allows 3 requests and is reported',
    { tokenBudget: tokensOfStep * 2.5 },
    false,
  ),
  'paid-usage': check('Usage before a limit is counted', async (scene) => {
    const result = await workOn(scene, { maxSteps: 2 })
    const used = result.usage.totalTokens
    const due = tokensOfStep * scene.requests.length
    expectTrue(used === due, `${used} tokens are counted, but ${due} were used (${describeEnd(result)})`)
    return `${used} tokens, ${endOf(result)}`
  }),
}

const loops = (title: string, turn: (scene: AgentScene, at: number) => Turn, behave: Behavior) =>
  check(title, async (scene) => {
    // Throws NotAsked here, not inside the model, if the agent has no such tool.
    turn(scene, 1)
    scene.behave = behave
    const result = await scene.play(capped((at) => turn(scene, at)))
    return `stopped after ${expectStopped(scene, result)}`
  })

const fail: Behavior = () => {
  throw new Error('No such file.')
}

export const loopChecks: AgentChecks = {
  'same-call': loops(
    'The same call with the same result',
    ({ tool }) => callOf(tool),
    () => 'Nothing new.',
  ),
  'two-calls': loops(
    'Two calls in turn',
    ({ variedTool }, at) => callOf(variedTool, at % 2),
    ({ input }) => `The result of ${JSON.stringify(input)}.`,
  ),
  failing: loops('A call that fails every time', ({ tool }) => callOf(tool), fail),
  'new-arguments': loops(
    'A different call every time, with the same result',
    ({ variedTool }, at) => callOf(variedTool, at),
    () => 'Nothing found.',
  ),
  'no-such-tool': loops(
    'A tool that does not exist',
    () => ({ calls: [{ name: 'no_such_tool' }] }),
    () => '',
  ),
}
