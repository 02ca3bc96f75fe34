import { formatCount } from '../../core/format/format-words.js'
import { expectTrue } from '../check-assertions.js'
import { type AgentCheckSpec, type AgentChecks, check } from './agent-check.js'
import { expectNormal, expectOneResult, isNormal } from './agent-check.js'
import { type AgentScene, callOf, describeEnd, endOf, hang, NotAsked, textsOf } from './agent-scene.js'
import type { ModelFault } from '../chaos/chaos-parts.js'
import { say, type Turn, turns } from './scripted-model.js'
import type { RunResult } from '../../../machines/agent/run-result.js'

/** Checks whether the agent works with the scripted model at all. The other checks depend on this. */
export const basicChecks: AgentChecks = {
  answer: check('The model answers immediately, and the run ends with the answer', async (scene) => {
    const result = await scene.play(turns(say('Hello.')))
    expectNormal(result)
    const isCalled = scene.requests.length > 0
    expectTrue(isCalled, 'the model passed to make() was not called; pass it to createAgent')
    return scene.describeRun(result)
  }),
  call: check(
    'The model calls a tool; the call is executed once and the model receives its result',
    async (scene) => {
      const { name } = scene.tool
      const result = await scene.callOnce()
      expectNormal(result)
      const { length } = scene.executions
      expectTrue(length === 1, `${name} was executed ${formatCount(length, 'time')}`)
      expectOneResult(scene)
      return `${name}, ${endOf(result)}`
    },
  ),
}

const neverRuns = (title: string, how: Pick<Turn, 'finishReason'>, fault?: ModelFault): AgentCheckSpec =>
  check(title, async (scene) => {
    const script = turns({ ...callOf(scene.tool), ...how }, say('I write less.'))
    const result = await scene.play(script, fault && { model: [{ at: 1, fault }] })
    const ran = scene.executions.map(({ input }) => JSON.stringify(input))
    expectTrue(ran.length === 0, `the call was executed with ${ran.join(', ')} (${describeEnd(result)})`)
    return scene.describeRun(result)
  })

const text = (title: string, finishReason: string): AgentCheckSpec =>
  check(title, async (scene) => {
    if (scene.options.facts.output) throw new NotAsked("the agent's answers are objects")
    const result = await scene.play(turns({ text: 'The first half', finishReason }, say(' and the second.')))
    const isTold = !isNormal(result) || (result.output ?? '').includes('second')
    expectTrue(isTold, `a truncated answer is reported as a normal end: '${result.output}'`)
    return endOf(result)
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
const after = (title: string, stop: (scene: AgentScene) => Promise<RunResult>): AgentCheckSpec =>
  check(title, async (scene) => {
    const result = await stop(scene)
    const texts = textsOf((await scene.sayAgain()).messages, 'user')
    expectTrue(texts.at(-1)?.includes('Again.') === true, 'the new message is not the last user message')
    return endOf(result)
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
  const process = scene.open(turns(callOf(scene.askingTool)))
  const run = process.start(scene.input)
  const waiting = await process.rest(run)
  for (const { callId } of waiting.pending ?? []) run.reject(callId, 'Not today.')
  return process.rest(run)
}

export const historyChecks: AgentChecks = {
  end: after('After a normal end', (scene) => scene.callOnce()),
  limit: after('After a step limit', (scene) =>
    scene.play(turns(callOf(scene.tool), callOf(scene.tool, 1)), {}, { limits: { maxSteps: 2 } }),
  ),
  'cancel-in-call': after('After a cancel while a call runs', (scene) => scene.cancelInCall(hang)),
  'cancel-in-answer': after('After a cancel while an answer streams', cancelInAnswer),
  deadline: after('After a deadline while a call runs', (scene) =>
    scene.callOnce({ tool: [{ at: 1, fault: 'hangs' }] }, { limits: { timeoutMs: 60_000 } }),
  ),
  'tool-throws': after('After a tool that throws', (scene) =>
    scene.callOnce({ tool: [{ at: 1, fault: 'throws' }] }),
  ),
  'provider-refuses': after('After the provider rejects the request that follows a call', (scene) =>
    scene.callOnce({ model: [{ at: 2, fault: 'refused' }] }),
  ),
  'broken-arguments': after('After arguments that are not JSON', (scene) =>
    scene.play(turns({ calls: [{ name: scene.tool.name, text: '{"path":' }] })),
  ),
  'unknown-tool': after('After a call to a nonexistent tool', (scene) =>
    scene.play(turns({ calls: [{ name: 'no_such_tool' }] })),
  ),
  'refused-call': after('After a person rejects a call', refuseCall),
}
