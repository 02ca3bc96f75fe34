import { formatCount } from '../../core/format/format-words.js'
import { expectTrue } from '../check-assertions.js'
import {
  type AgentCheckSpec,
  type AgentChecks,
  type AgentNeed,
  askingToolOf,
  callOf,
  callOnce,
  cancelInCall,
  describeEnd,
  describeRun,
  endOf,
  expectNormal,
  isNormal,
  say,
  toolOf,
  turns,
} from './agent-check.js'
import { type AgentScene, hang, textsOf } from './agent-scene.js'
import type { ModelFault } from '../chaos/chaos-parts.js'
import type { Turn } from './scripted-model.js'
import type { RunResult } from '../../../machines/agent/run-result.js'

/** Checks whether the agent works with the scripted model at all. The other checks depend on this. */
export const basicChecks: AgentChecks = {
  answer: {
    title: 'The model answers immediately, and the run ends with the answer',
    async run(scene) {
      const result = await scene.play(turns(say('Hello.')))
      expectNormal(result)
      expectTrue(
        scene.requests.length > 0,
        'the model passed to make() was not called; pass it to createAgent',
      )
      return describeRun(scene, result)
    },
  },
  call: {
    title: 'The model calls a tool; the call is executed once and the model receives its result',
    needs: ['tool'],
    async run(scene) {
      const { name } = toolOf(scene)
      const result = await scene.play(callOnce(scene))
      expectNormal(result)
      const { length } = scene.executions
      expectTrue(length === 1, `${name} was executed ${formatCount(length, 'time')}`)
      const results = textsOf(scene.requests.at(-1)?.messages ?? [], 'tool')
      expectTrue(results.length === 1, `the model received ${formatCount(results.length, 'result')}`)
      return `${name}, ${endOf(result)}`
    },
  },
}

const neverRuns = (title: string, how: Pick<Turn, 'finishReason'>, fault?: ModelFault): AgentCheckSpec => ({
  title,
  needs: ['tool'],
  async run(scene) {
    const script = turns({ ...callOf(toolOf(scene)), ...how }, say('I write less.'))
    const result = await scene.play(script, fault && { model: [{ at: 1, fault }] })
    const ran = scene.executions.map(({ input }) => JSON.stringify(input))
    expectTrue(ran.length === 0, `the call was executed with ${ran.join(', ')} (${describeEnd(result)})`)
    return describeRun(scene, result)
  },
})

const text = (title: string, finishReason: string): AgentCheckSpec => ({
  title,
  needs: ['words'],
  async run(scene) {
    const result = await scene.play(turns({ text: 'The first half', finishReason }, say(' and the second.')))
    const isWhole = (result.output ?? '').includes('second')
    expectTrue(
      !isNormal(result) || isWhole,
      `a truncated answer is reported as a normal end: '${result.output}'`,
    )
    return endOf(result)
  },
})

export const truncationChecks: AgentChecks = {
  'cut-call': neverRuns('A call whose arguments are truncated is not executed', {}, 'truncated'),
  'whole-looking-call': neverRuns('A call in a truncated answer is not executed, even if it looks complete', {
    finishReason: 'length',
  }),
  'filtered-call': neverRuns('A call in an answer stopped by a content filter is not executed', {
    finishReason: 'content_filter',
  }),
  'broken-stream': neverRuns('A call is not executed when the stream breaks after it', {}, 'cut'),
  'unfinished-stream': neverRuns(
    'A call is not executed when the stream closes without an end marker',
    {},
    'unfinished',
  ),
  'cut-text': text('Text cut off by the length limit is continued or reported', 'length'),
  'filtered-text': text('Text stopped by a content filter is reported', 'content_filter'),
}

/** Stops a run, then sends `Again.`. The scene rejects each request that a strict provider would reject. */
const after = (
  title: string,
  stop: (scene: AgentScene) => Promise<RunResult>,
  needs: readonly AgentNeed[] = ['tool'],
): AgentCheckSpec => ({
  title,
  needs,
  async run(scene) {
    const result = await stop(scene)
    const before = scene.requests.length
    const again = await scene.process.say('Again.')
    const request = scene.requests[before]
    expectTrue(request !== undefined, `no further request: ${describeEnd(again)}`)
    const texts = textsOf(request.messages, 'user')
    expectTrue(texts.at(-1)?.includes('Again.') === true, 'the new message is not the last user message')
    return endOf(result)
  },
})

async function cancelInAnswer(scene: AgentScene): Promise<RunResult> {
  const controller = new AbortController()
  const script = (at: number): Turn => {
    if (at === 1) controller.abort()
    return say('Half of an answer.')
  }
  return scene.play(script, {}, { signal: controller.signal })
}

async function refuseCall(scene: AgentScene): Promise<RunResult> {
  const process = scene.open(turns(callOf(askingToolOf(scene))))
  const run = process.start(scene.input)
  const waiting = await process.rest(run)
  for (const { callId } of waiting.pending ?? []) run.reject(callId, 'Not today.')
  return process.rest(run)
}

export const historyChecks: AgentChecks = {
  end: after('After a normal end', (scene) => scene.play(callOnce(scene))),
  limit: after('After a step limit', (scene) => {
    const tool = toolOf(scene)
    return scene.play(turns(callOf(tool), callOf(tool, 1)), {}, { limits: { maxSteps: 2 } })
  }),
  'cancel-in-call': after('After a cancel while a call runs', (scene) => cancelInCall(scene, hang)),
  'cancel-in-answer': after('After a cancel while an answer streams', cancelInAnswer, []),
  deadline: after('After a deadline while a call runs', (scene) =>
    scene.play(callOnce(scene), { tool: [{ at: 1, fault: 'hangs' }] }, { limits: { timeoutMs: 60_000 } }),
  ),
  'tool-throws': after('After a tool that throws', (scene) =>
    scene.play(callOnce(scene), { tool: [{ at: 1, fault: 'throws' }] }),
  ),
  'provider-refuses': after('After the provider rejects the request that follows a call', (scene) =>
    scene.play(callOnce(scene), { model: [{ at: 2, fault: 'refused' }] }),
  ),
  'broken-arguments': after('After arguments that are not JSON', (scene) =>
    scene.play(turns({ calls: [{ name: toolOf(scene).name, text: '{"path":' }] })),
  ),
  'unknown-tool': after(
    'After a call to a nonexistent tool',
    (scene) => scene.play(turns({ calls: [{ name: 'no_such_tool' }] })),
    [],
  ),
  'refused-call': after('After a person rejects a call', refuseCall, ['askingTool']),
}
