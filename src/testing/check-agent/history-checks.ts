import type { RunResult } from '../../../machines/agent/run-result.js'
import {
  type AgentCheckSpec,
  type AgentNeed,
  askingToolOf,
  callOf,
  describeEnd,
  endOf,
  expect,
  say,
  toolOf,
  turns,
} from './agent-check.js'
import { type AgentProcess, type AgentScene, hang, textsOf } from './agent-scene.js'

/** One stop, and then `Again.`: the scene refuses what a strict provider refuses. */
const after = (
  name: string,
  title: string,
  stop: (scene: AgentScene) => Promise<{ process: AgentProcess; result: RunResult }>,
  needs: readonly AgentNeed[] = ['tool'],
): AgentCheckSpec => ({
  class: 'history',
  name,
  title,
  needs,
  async run(scene) {
    const { process, result } = await stop(scene)
    const before = scene.requests.length
    const again = await process.say('Again.')
    const request = scene.requests[before]
    expect(request !== undefined, `no further request: ${describeEnd(again)}`)
    const said = textsOf(request.messages, 'user')
    expect(said.at(-1)?.includes('Again.') === true, 'the new message is not the last one of the user')
    return endOf(result)
  },
})

async function cancelInCall(scene: AgentScene): Promise<{ process: AgentProcess; result: RunResult }> {
  const controller = new AbortController()
  const process = scene.open(turns(callOf(toolOf(scene))))
  scene.behave = (execution, signal) => {
    controller.abort()
    return hang(execution, signal)
  }
  return { process, result: await process.say(scene.input, { signal: controller.signal }) }
}

/** After every way to stop, a strict provider accepts the next request. */
export const historyChecks: readonly AgentCheckSpec[] = [
  after('end', 'After a normal end', async (scene) => {
    const process = scene.open(turns(callOf(toolOf(scene))))
    return { process, result: await process.say(scene.input) }
  }),
  after('limit', 'After a limit of steps', async (scene) => {
    const tool = toolOf(scene)
    const process = scene.open(turns(callOf(tool), callOf(tool, 1)))
    return { process, result: await process.say(scene.input, { limits: { maxSteps: 2 } }) }
  }),
  after('cancel-in-call', 'After a cancel while a call runs', cancelInCall),
  after(
    'cancel-in-answer',
    'After a cancel while an answer streams',
    async (scene) => {
      const controller = new AbortController()
      const process = scene.open((at) => {
        if (at === 1) controller.abort()
        return say('Half of an answer.')
      })
      return { process, result: await process.say(scene.input, { signal: controller.signal }) }
    },
    [],
  ),
  after('deadline', 'After a deadline while a call runs', async (scene) => {
    const process = scene.open(turns(callOf(toolOf(scene))), { tool: [{ at: 1, fault: 'hangs' }] })
    return { process, result: await process.say(scene.input, { limits: { timeoutMs: 60_000 } }) }
  }),
  after('tool-throws', 'After a tool that throws', async (scene) => {
    const process = scene.open(turns(callOf(toolOf(scene))), { tool: [{ at: 1, fault: 'throws' }] })
    return { process, result: await process.say(scene.input) }
  }),
  after('provider-refuses', 'After a provider that refuses the request after a call', async (scene) => {
    const process = scene.open(turns(callOf(toolOf(scene))), { model: [{ at: 2, fault: 'refused' }] })
    return { process, result: await process.say(scene.input) }
  }),
  after('broken-arguments', 'After arguments that are no JSON', async (scene) => {
    const { name } = toolOf(scene)
    const process = scene.open(turns({ calls: [{ name, text: '{"path":' }] }))
    return { process, result: await process.say(scene.input) }
  }),
  after(
    'unknown-tool',
    'After a call of a tool that does not exist',
    async (scene) => {
      const process = scene.open(turns({ calls: [{ name: 'no_such_tool' }] }))
      return { process, result: await process.say(scene.input) }
    },
    [],
  ),
  after(
    'refused-call',
    'After a person has refused a call',
    async (scene) => {
      const process = scene.open(turns(callOf(askingToolOf(scene))))
      const run = process.start(scene.input)
      const waiting = await process.rest(run)
      for (const { callId } of waiting.pending ?? []) run.reject(callId, 'Not today.')
      return { process, result: await process.rest(run) }
    },
    ['askingTool'],
  ),
]
