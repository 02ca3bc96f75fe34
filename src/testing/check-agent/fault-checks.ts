import { formatCount } from '../../core/format/format-words.js'
import type { ModelFault, StoreFault, ToolFault } from '../chaos/chaos-parts.js'
import { expectTrue } from '../check-assertions.js'
import {
  type AgentCheckSpec,
  callOf,
  describeEnd,
  describeRun,
  endOf,
  expectNormal,
  expectRequests,
  expectTold,
  say,
  toolOf,
  turns,
  isNormal,
} from './agent-check.js'
import { textsOf, type AgentProcess, type AgentScene, type Execution, sessionId } from './agent-scene.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import type { Script } from './scripted-model.js'

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

const reports = (fault: ModelFault, title: string, most: number): AgentCheckSpec => ({
  class: 'faults',
  name: fault,
  title,
  async run(scene) {
    const process = scene.open(turns(), { model: { seed: scene.seed, rate: 1, faults: [fault] } })
    const result = await process.say(scene.input)
    expectTold(result)
    expectRequests(scene, most, result)
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
    expectTrue(results.length === 1, `the model received ${formatCount(results.length, 'result')}`)
    return `the model receives '${results[0]?.slice(0, 60)}'`
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
    return `${formatCount(scene.executions.length, 'call')} executed, ${endOf(result)}`
  },
})

export const faultChecks: readonly AgentCheckSpec[] = [
  passes('overloaded', 'A single 503 response is retried'),
  passes('rate_limited', 'A single 429 response is retried'),
  passes('cut', 'A stream that breaks once is retried'),
  reports('refused', 'A status 400 is reported and not retried', 1),
  reports('empty', 'Answers without content are reported', 20),
  reports('stalled', 'A model that stalls forever is abandoned and reported', 20),
  tool('throws', 'A tool throws; the model receives the error and the run continues'),
  tool('undefined', 'A tool returns undefined; the run continues'),
  tool('circular', 'A tool returns a value that JSON cannot hold; the run continues'),
  tool('deaf', 'A tool never ends; it times out and the run continues'),
  store('refused', 'A store that rejects a write is reported'),
  store('lost_reply', 'A store whose reply is lost is reported'),
]

/**
 * Two steps of calls and an answer. The script depends only on the messages, so that another process can continue it.
 */
function createScript(scene: AgentScene): Script {
  const tool = toolOf(scene)
  return (_at, { messages }) => {
    const turn = messages.filter(({ role }) => role === 'assistant').length
    if (turn >= 2) return say('Both are done.')
    return {
      calls: [0, 1].map((n) => ({
        name: tool.name,
        input: tool.input(turn * 2 + n),
        id: `call_${turn}_${n}`,
      })),
    }
  }
}

function findRepeated(executions: readonly Execution[]): string | undefined {
  const keys = executions.map(({ key }) => key)
  return keys.find((key, at) => keys.indexOf(key) !== at)
}

async function finish(scene: AgentScene, script: Script): Promise<RunResult> {
  const next: AgentProcess = scene.open(script)
  const isKnown = (await scene.store.get(sessionId)) !== null
  if (!isKnown) return next.say(scene.input)
  const run = await next.resume()
  const result = await next.rest(run)
  // An interrupted call may wait for a person to confirm whether it took effect.
  if (result.state !== 'WAITING_FOR_INPUT') return result
  for (const { callId, interrupted } of result.pending ?? [])
    if (interrupted) run.reject(callId, 'It is done.')
  return next.rest(run)
}

/** One process dies at a write and another continues. Returns false if there is no such write. */
async function dieAt(scene: AgentScene, at: number, fault: StoreFault): Promise<boolean> {
  const script = createScript(scene)
  const process = scene.open(script, { store: [{ at, fault }] })
  const ended = await process.restOrDeath(process.start(scene.input))
  process.die()
  const [chaos] = process.chaos
  if (chaos?.landed.length === 0) {
    process.chaos.pop()
    expectTrue(
      ended !== null && isNormal(ended),
      `without a fault it ended ${ended ? describeEnd(ended) : 'not'}`,
    )
    return false
  }
  const place = `the process died at write ${at} (${fault})`
  const result = await finish(scene, script)
  expectTrue(isNormal(result), `${place}: the next process ended ${describeEnd(result)}`)
  const repeated = findRepeated(scene.executions)
  if (!toolOf(scene).mayRepeat)
    expectTrue(
      repeated === undefined,
      `${place}: ${toolOf(scene).name} was executed twice for one call (${repeated})`,
    )
  return true
}

const resume = (fault: StoreFault, name: string, title: string): AgentCheckSpec => ({
  class: 'resume',
  name,
  title,
  needs: ['tool'],
  async run(scene) {
    let deaths = 0
    for (let at = 1; at <= 200; at++) {
      const place = scene.another()
      try {
        // oxlint-disable-next-line no-await-in-loop -- one death after the other
        const isHit = await dieAt(place, at, fault)
        // oxlint-disable-next-line no-await-in-loop -- as above
        await place.judge()
        if (!isHit) break
        deaths += 1
      } finally {
        place.close()
      }
    }
    expectTrue(deaths > 0, 'the agent writes nothing into its store')
    return `the process died at each of ${formatCount(deaths, 'write')}`
  },
})

export const resumeChecks: readonly AgentCheckSpec[] = [
  resume(
    'dies',
    'before-each-write',
    'The process dies before each of its writes; another process finishes the run and no call runs twice',
  ),
  resume(
    'dies_after',
    'after-each-write',
    'The process dies after each of its writes; another process finishes the run and no call runs twice',
  ),
]
