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
} from './agent-check.js'
import { textsOf } from './agent-scene.js'

/** Whether the agent works at all with the scripted model: what the other checks rest on. */
export const basicChecks: readonly AgentCheckSpec[] = [
  {
    class: 'basics',
    name: 'answer',
    title: 'A model that answers at once: the run ends with the answer',
    async run(scene) {
      const result = await scene.open(turns(say('Hello.'))).say(scene.input)
      expectNormal(result)
      expectTrue(
        scene.requests.length > 0,
        'the model that make() is given was not asked: hand it to createAgent',
      )
      return describeRun(scene, result)
    },
  },
  {
    class: 'basics',
    name: 'call',
    title: 'A model that calls a tool: the call is executed once, and the model reads its result',
    needs: ['tool'],
    async run(scene) {
      const tool = toolOf(scene)
      const result = await scene.open(turns(callOf(tool))).say(scene.input)
      expectNormal(result)
      expectTrue(scene.executions.length === 1, `${tool.name} was executed ${scene.executions.length} times`)
      const results = textsOf(scene.requests.at(-1)?.messages ?? [], 'tool')
      expectTrue(results.length === 1, `the model read ${results.length} results`)
      return `${tool.name}, ${endOf(result)}`
    },
  },
]
