import { expectTrue } from '../check-assertions.js'
import {
  type AgentCheckSpec,
  callOf,
  describeEnd,
  describeRun,
  NotAsked,
  toolOf,
  turns,
} from './agent-check.js'
import { type AgentProcess, type AgentScene, type Behavior, hang, nextTask, textsOf } from './agent-scene.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import type { Script } from './scripted-model.js'

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

/** A cancel from within a call: no request may follow the one that made the call. */
const inCall = (name: string, title: string, then: Behavior): AgentCheckSpec =>
  cancel(name, title, true, async (scene, controller) => {
    scene.behave = (execution, signal) => {
      controller.abort()
      return then(execution, signal)
    }
    const script: Script = turns(callOf(toolOf(scene)))
    const result = await scene.open(script).say(scene.input, { signal: controller.signal })
    expectTrue(scene.executions.length === 1, `${scene.executions.length} calls were executed`)
    expectTrue(scene.requests.length === 1, `${scene.requests.length} requests (${describeEnd(result)})`)
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
    // The first call has its result by now.
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

/** Nothing starts after a cancel, what had returned is kept, and the caller gets an end. */
export const cancelChecks: readonly AgentCheckSpec[] = [
  cancel('before', 'A signal that is aborted already: no request', false, async (scene, controller) => {
    controller.abort()
    const result = await scene.open(turns()).say(scene.input, { signal: controller.signal })
    expectTrue(scene.requests.length === 0, `${scene.requests.length} requests (${describeEnd(result)})`)
    return result
  }),
  cancel('in-answer', 'While the model falls silent in an answer', false, async (scene, controller) => {
    const process = scene.open(turns(), { model: [{ at: 1, fault: 'stalled' }] })
    const run = process.start(scene.input, { signal: controller.signal })
    await process.untilFault()
    controller.abort()
    return run.result
  }),
  inCall('in-call', 'While a call runs that obeys the signal', hang),
  inCall('in-deaf-call', 'While a call runs that never ends', () => new Promise(() => undefined)),
  inCall('swallowed', 'A call that answers in spite of the abort', () => 'The text.'),
  cancel('in-retry', 'While a retry waits', false, async (scene, controller) => {
    const process = scene.open(turns(), { model: [{ at: 1, fault: 'overloaded' }] })
    if (process.agent.config.retry.maxAttempts <= 1) throw new NotAsked('the agent does not try again')
    const run = process.start(scene.input, { signal: controller.signal })
    // At once: some agents wait for a millisecond, or not at all.
    run.events$.subscribe({
      next: ({ type }) => {
        if (type === 'retry') controller.abort()
      },
      error: () => undefined,
    })
    const result = await run.result
    expectTrue(scene.requests.length === 1, `${scene.requests.length} requests (${describeEnd(result)})`)
    return result
  }),
  cancel('result-kept', 'Of two calls one had returned: its result is in the next request', true, keepResult),
]
