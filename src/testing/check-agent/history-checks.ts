import type { RunResult } from '../../../machines/agent/run-result.js'
import { expectTrue } from '../check-assertions.js'
import {
  type AgentCheckSpec,
  type AgentNeed,
  askingToolOf,
  callOf,
  describeEnd,
  endOf,
  say,
  toolOf,
  turns,
} from './agent-check.js'
import {
  type AgentProcess,
  type AgentScene,
  hang,
  type SayOptions,
  type SceneFaults,
  textsOf,
} from './agent-scene.js'
import type { Script } from './scripted-model.js'

interface Stopped {
  process: AgentProcess
  result: RunResult
}

/** One run, to its end. */
async function play(
  scene: AgentScene,
  script: Script,
  faults: SceneFaults = {},
  options: SayOptions = {},
): Promise<Stopped> {
  const process = scene.open(script, faults)
  return { process, result: await process.say(scene.input, options) }
}

/** One stop, and then `Again.`: the scene refuses what a strict provider refuses. */
const after = (
  name: string,
  title: string,
  stop: (scene: AgentScene) => Promise<Stopped>,
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
    expectTrue(request !== undefined, `no further request: ${describeEnd(again)}`)
    const said = textsOf(request.messages, 'user')
    expectTrue(said.at(-1)?.includes('Again.') === true, 'the new message is not the last one of the user')
    return endOf(result)
  },
})

async function cancelInCall(scene: AgentScene): Promise<Stopped> {
  const controller = new AbortController()
  scene.behave = (execution, signal) => {
    controller.abort()
    return hang(execution, signal)
  }
  return play(scene, turns(callOf(toolOf(scene))), {}, { signal: controller.signal })
}

/** After every way to stop, a strict provider accepts the next request. */
export const historyChecks: readonly AgentCheckSpec[] = [
  after('end', 'After a normal end', (scene) => play(scene, turns(callOf(toolOf(scene))))),
  after('limit', 'After a limit of steps', (scene) => {
    const tool = toolOf(scene)
    return play(scene, turns(callOf(tool), callOf(tool, 1)), {}, { limits: { maxSteps: 2 } })
  }),
  after('cancel-in-call', 'After a cancel while a call runs', cancelInCall),
  after(
    'cancel-in-answer',
    'After a cancel while an answer streams',
    (scene) => {
      const controller = new AbortController()
      const script: Script = (at) => {
        if (at === 1) controller.abort()
        return say('Half of an answer.')
      }
      return play(scene, script, {}, { signal: controller.signal })
    },
    [],
  ),
  after('deadline', 'After a deadline while a call runs', (scene) => {
    const faults: SceneFaults = { tool: [{ at: 1, fault: 'hangs' }] }
    return play(scene, turns(callOf(toolOf(scene))), faults, { limits: { timeoutMs: 60_000 } })
  }),
  after('tool-throws', 'After a tool that throws', (scene) =>
    play(scene, turns(callOf(toolOf(scene))), { tool: [{ at: 1, fault: 'throws' }] }),
  ),
  after('provider-refuses', 'After a provider that refuses the request after a call', (scene) =>
    play(scene, turns(callOf(toolOf(scene))), { model: [{ at: 2, fault: 'refused' }] }),
  ),
  after('broken-arguments', 'After arguments that are no JSON', (scene) =>
    play(scene, turns({ calls: [{ name: toolOf(scene).name, text: '{"path":' }] })),
  ),
  after(
    'unknown-tool',
    'After a call of a tool that does not exist',
    (scene) => play(scene, turns({ calls: [{ name: 'no_such_tool' }] })),
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
