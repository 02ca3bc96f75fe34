import { formatCount } from '../../core/format/format-words.js'
import { expectTrue } from '../check-assertions.js'
import {
  type AgentCheckSpec,
  callOf,
  describeRun,
  endOf,
  expectNormal,
  say,
  toolOf,
  turns,
  describeEnd,
  isNormal,
  type AgentNeed,
  askingToolOf,
} from './agent-check.js'
import {
  textsOf,
  type AgentProcess,
  type AgentScene,
  hang,
  type SayOptions,
  type SceneFaults,
} from './agent-scene.js'
import type { ModelFault } from '../chaos/chaos-parts.js'
import type { Turn, Script } from './scripted-model.js'
import type { RunResult } from '../../../machines/agent/run-result.js'

/** Checks whether the agent works with the scripted model at all. The other checks depend on this. */
export const basicChecks: readonly AgentCheckSpec[] = [
  {
    class: 'basics',
    name: 'answer',
    title: 'The model answers immediately, and the run ends with the answer',
    async run(scene) {
      const result = await scene.open(turns(say('Hello.'))).say(scene.input)
      expectNormal(result)
      expectTrue(
        scene.requests.length > 0,
        'the model passed to make() was not called; pass it to createAgent',
      )
      return describeRun(scene, result)
    },
  },
  {
    class: 'basics',
    name: 'call',
    title: 'The model calls a tool; the call is executed once and the model receives its result',
    needs: ['tool'],
    async run(scene) {
      const tool = toolOf(scene)
      const result = await scene.open(turns(callOf(tool))).say(scene.input)
      expectNormal(result)
      expectTrue(
        scene.executions.length === 1,
        `${tool.name} was executed ${formatCount(scene.executions.length, 'time')}`,
      )
      const results = textsOf(scene.requests.at(-1)?.messages ?? [], 'tool')
      expectTrue(results.length === 1, `the model received ${formatCount(results.length, 'result')}`)
      return `${tool.name}, ${endOf(result)}`
    },
  },
]

const neverRuns = (
  name: string,
  title: string,
  finishReason: string | undefined,
  fault?: ModelFault,
): AgentCheckSpec => ({
  class: 'truncation',
  name,
  title,
  needs: ['tool'],
  async run(scene) {
    const first: Turn = { ...callOf(toolOf(scene)), ...(finishReason !== undefined && { finishReason }) }
    const process = scene.open(turns(first, say('I write less.')), {
      ...(fault && { model: [{ at: 1, fault }] }),
    })
    const result = await process.say(scene.input)
    const ran = scene.executions.map(({ input }) => JSON.stringify(input))
    expectTrue(ran.length === 0, `the call was executed with ${ran.join(', ')} (${describeEnd(result)})`)
    return describeRun(scene, result)
  },
})

const text = (name: string, title: string, finishReason: string): AgentCheckSpec => ({
  class: 'truncation',
  name,
  title,
  needs: ['words'],
  async run(scene) {
    const process = scene.open(turns({ text: 'The first half', finishReason }, say(' and the second.')))
    const result = await process.say(scene.input)
    const isWhole = (result.output ?? '').includes('second')
    expectTrue(
      !isNormal(result) || isWhole,
      `a truncated answer is reported as a normal end: '${result.output}'`,
    )
    return endOf(result)
  },
})

/** Checks that incomplete output has no effect. */
export const truncationChecks: readonly AgentCheckSpec[] = [
  neverRuns('cut-call', 'A call whose arguments are truncated is not executed', undefined, 'truncated'),
  neverRuns(
    'whole-looking-call',
    'A call in a truncated answer is not executed, even if it looks complete',
    'length',
  ),
  neverRuns(
    'filtered-call',
    'A call in an answer stopped by a content filter is not executed',
    'content_filter',
  ),
  neverRuns('broken-stream', 'A call is not executed when the stream breaks after it', undefined, 'cut'),
  neverRuns(
    'unfinished-stream',
    'A call is not executed when the stream closes without an end marker',
    undefined,
    'unfinished',
  ),
  text('cut-text', 'Text cut off by the length limit is continued or reported', 'length'),
  text('filtered-text', 'Text stopped by a content filter is reported', 'content_filter'),
]

interface Stopped {
  process: AgentProcess
  result: RunResult
}

async function play(
  scene: AgentScene,
  script: Script,
  faults: SceneFaults = {},
  options: SayOptions = {},
): Promise<Stopped> {
  const process = scene.open(script, faults)
  return { process, result: await process.say(scene.input, options) }
}

/** Stops a run, then sends `Again.`. The scene rejects each request that a strict provider would reject. */
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
    const texts = textsOf(request.messages, 'user')
    expectTrue(texts.at(-1)?.includes('Again.') === true, 'the new message is not the last user message')
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

/** Checks that a strict provider accepts the next request after every way to stop. */
export const historyChecks: readonly AgentCheckSpec[] = [
  after('end', 'After a normal end', (scene) => play(scene, turns(callOf(toolOf(scene))))),
  after('limit', 'After a step limit', (scene) => {
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
  after('provider-refuses', 'After the provider rejects the request that follows a call', (scene) =>
    play(scene, turns(callOf(toolOf(scene))), { model: [{ at: 2, fault: 'refused' }] }),
  ),
  after('broken-arguments', 'After arguments that are not JSON', (scene) =>
    play(scene, turns({ calls: [{ name: toolOf(scene).name, text: '{"path":' }] })),
  ),
  after(
    'unknown-tool',
    'After a call to a nonexistent tool',
    (scene) => play(scene, turns({ calls: [{ name: 'no_such_tool' }] })),
    [],
  ),
  after(
    'refused-call',
    'After a person rejects a call',
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
