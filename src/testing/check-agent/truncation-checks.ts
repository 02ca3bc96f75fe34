import type { ModelFault } from '../chaos/chaos-model.js'
import { expectTrue } from '../check-assertions.js'
import {
  type AgentCheckSpec,
  callOf,
  describeEnd,
  describeRun,
  endOf,
  isNormal,
  say,
  toolOf,
  turns,
} from './agent-check.js'
import type { Turn } from './scripted-model.js'

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
    expectTrue(!isNormal(result) || isWhole, `half an answer is told as a normal end: '${result.output}'`)
    return endOf(result)
  },
})

/** What is incomplete has no effect. */
export const truncationChecks: readonly AgentCheckSpec[] = [
  neverRuns('cut-call', 'A call cut by length in its arguments is not executed', undefined, 'truncated'),
  neverRuns(
    'whole-looking-call',
    'A call in an answer cut by length is not executed, though it looks whole',
    'length',
  ),
  neverRuns(
    'filtered-call',
    'A call in an answer that a content filter stopped is not executed',
    'content_filter',
  ),
  neverRuns('broken-stream', 'A call is not executed when the stream breaks after it', undefined, 'cut'),
  neverRuns(
    'unfinished-stream',
    'A call is not executed when the stream closes without an end',
    undefined,
    'unfinished',
  ),
  text('cut-text', 'A text cut by length is continued, or told', 'length'),
  text('filtered-text', 'A text that a content filter stopped is told', 'content_filter'),
]
