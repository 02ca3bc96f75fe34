import type { ModelFault } from '../chaos/chaos-model.js'
import type { StoreFault } from '../chaos/chaos-store.js'
import type { ToolFault } from '../chaos/chaos-tool.js'
import { expectTrue } from '../check-assertions.js'
import { formatPlural } from '../evaluate/report-words.js'
import {
  type AgentCheckSpec,
  callOf,
  describeEnd,
  describeRun,
  endOf,
  expectNormal,
  expectTold,
  say,
  toolOf,
  turns,
} from './agent-check.js'
import { textsOf } from './agent-scene.js'

const passes = (fault: ModelFault, title: string): AgentCheckSpec => ({
  class: 'faults',
  name: fault.replaceAll('_', '-'),
  title,
  async run(scene) {
    const process = scene.open(turns(say('Lost.'), say('Hello.')), { model: [{ at: 1, fault }] })
    const { retry } = process.agent.config
    const result = await process.say(scene.input)
    const mayRetry = (fault === 'rate_limited' ? retry.rateLimitAttempts : retry.maxAttempts) > 1
    if (mayRetry) expectNormal(result)
    else expectTold(result)
    return describeRun(scene, result)
  },
})

const told = (fault: ModelFault, title: string, most: number): AgentCheckSpec => ({
  class: 'faults',
  name: fault,
  title,
  async run(scene) {
    const process = scene.open(turns(), { model: { seed: scene.seed, rate: 1, faults: [fault] } })
    const result = await process.say(scene.input)
    expectTold(result)
    const { length } = scene.requests
    expectTrue(length <= most, `${length} requests (${describeEnd(result)})`)
    return describeRun(scene, result)
  },
})

const tool = (fault: ToolFault, title: string): AgentCheckSpec => ({
  class: 'faults',
  name: `tool-${fault.replaceAll('_', '-')}`,
  title,
  needs: ['tool'],
  async run(scene) {
    const process = scene.open(turns(callOf(toolOf(scene))), { tool: [{ at: 1, fault }] })
    const result = await process.say(scene.input)
    expectNormal(result)
    const results = textsOf(scene.requests.at(-1)?.messages ?? [], 'tool')
    expectTrue(results.length === 1, `the model read ${results.length} results`)
    return `the model reads '${results[0]?.slice(0, 60)}'`
  },
})

const store = (fault: StoreFault, title: string): AgentCheckSpec => ({
  class: 'faults',
  name: `store-${fault.replaceAll('_', '-')}`,
  title,
  needs: ['tool'],
  async run(scene) {
    const process = scene.open(turns(callOf(toolOf(scene))), { store: [{ at: 2, fault }] })
    const result = await process.say(scene.input)
    expectTold(result)
    return `${formatPlural(scene.executions.length, 'call')} executed, ${endOf(result)}`
  },
})

/** Providers, tools and stores that fail. */
export const faultChecks: readonly AgentCheckSpec[] = [
  passes('overloaded', 'Status 503 once: tried again'),
  passes('rate_limited', 'Status 429 once: tried again'),
  passes('cut', 'A stream that breaks once: tried again'),
  told('refused', 'Status 400: told, and not tried again', 1),
  told('empty', 'Answers without a word: told', 20),
  told('stalled', 'A model that falls silent for ever: given up, and told', 20),
  tool('throws', 'A tool that throws: the model reads it, and the run goes on'),
  tool('undefined', 'A tool that returns undefined: the same'),
  tool('circular', 'A tool that returns what no JSON has: the same'),
  tool('deaf', 'A tool that never ends: given up after its time limit, and the run goes on'),
  store('refused', 'A store that refuses a write: told'),
  store('lost_reply', 'A store whose reply is lost: told'),
]
