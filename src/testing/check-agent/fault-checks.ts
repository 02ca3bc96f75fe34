import { formatCount } from '../../core/format/format-words.js'
import type { ModelFault, StoreFault, ToolFault } from '../chaos/chaos-parts.js'
import { expectTrue } from '../check-assertions.js'
import { type AgentCheckSpec, type AgentChecks, check } from './agent-check.js'
import { expectNormal, expectOneResult, expectTold, isNormal } from './agent-check.js'
import { AgentScene, describeEnd, endOf, sessionId } from './agent-scene.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { say, type Script, turns } from './scripted-model.js'

const passes = (fault: ModelFault, title: string): AgentCheckSpec =>
  check(title, async (scene) => {
    const script = turns(say('Lost.'), say('Hello.'))
    const result = await scene.play(script, { model: [{ at: 1, fault }] })
    const { retry } = scene.process.agent.config
    const mayRetry = (fault === 'rate_limited' ? retry.rateLimitAttempts : retry.maxAttempts) > 1
    if (mayRetry) expectNormal(result)
    else expectTold(result)
    return scene.describeRun(result)
  })

const reports = (fault: ModelFault, title: string, most: number): AgentCheckSpec =>
  check(title, async (scene) => {
    const { seed } = scene.options
    const result = await scene.play(turns(), { model: { seed, rate: 1, faults: [fault] } })
    expectTold(result)
    scene.expectRequests(most, result)
    return scene.describeRun(result)
  })

const tool = (fault: ToolFault, title: string): AgentCheckSpec =>
  check(title, async (scene) => {
    expectNormal(await scene.callOnce({ tool: [{ at: 1, fault }] }))
    expectOneResult(scene)
    return `the model receives '${scene.lastResults[0]?.slice(0, 60)}'`
  })

const store = (fault: StoreFault, title: string): AgentCheckSpec =>
  check(title, async (scene) => {
    const result = await scene.callOnce({ store: [{ at: 2, fault }] })
    expectTold(result)
    return `${formatCount(scene.executions.length, 'call')} executed, ${endOf(result)}`
  })

export const faultChecks: AgentChecks = {
  overloaded: passes('overloaded', 'A single 503 response is retried'),
  'rate-limited': passes('rate_limited', 'A single 429 response is retried'),
  cut: passes('cut', 'A stream that breaks once is retried'),
  refused: reports('refused', 'A status 400 is reported and not retried', 1),
  empty: reports('empty', 'Answers without content are reported', 20),
  stalled: reports('stalled', 'A model that stalls forever is abandoned and reported', 20),
  'tool-throws': tool('throws', 'A tool throws; the model receives the error and the run continues'),
  'tool-undefined': tool('undefined', 'A tool returns undefined; the run continues'),
  'tool-circular': tool('circular', 'A tool returns a value that JSON cannot hold; the run continues'),
  'tool-deaf': tool('deaf', 'A tool never ends; it times out and the run continues'),
  'store-refused': store('refused', 'A store that rejects a write is reported'),
  'store-lost-reply': store('lost_reply', 'A store whose reply is lost is reported'),
}

/** The script depends only on the messages, so that another process can continue it. */
function createScript(scene: AgentScene): Script {
  const { tool } = scene
  return (_at, { messages }) => {
    const turn = messages.filter(({ role }) => role === 'assistant').length
    if (turn >= 2) return say('Both are done.')
    const { name, input } = tool
    return { calls: [0, 1].map((n) => ({ name, input: input(turn * 2 + n), id: `call_${turn}_${n}` })) }
  }
}

async function finish(scene: AgentScene, script: Script): Promise<RunResult> {
  const next = scene.open(script)
  if ((await scene.store.get(sessionId)) === null) return next.say(scene.input)
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
    const isFine = ended !== null && isNormal(ended)
    expectTrue(isFine, `without a fault it ended ${ended ? describeEnd(ended) : 'not'}`)
    return false
  }
  const place = `the process died at write ${at} (${fault})`
  const result = await finish(scene, script)
  expectTrue(isNormal(result), `${place}: the next process ended ${describeEnd(result)}`)
  const { name, mayRepeat } = scene.tool
  const keys = scene.executions.map(({ key }) => key)
  const repeated = keys.find((key, i) => keys.indexOf(key) !== i)
  const isOnce = mayRepeat || repeated === undefined
  expectTrue(isOnce, `${place}: ${name} was executed twice for one call (${repeated})`)
  return true
}

const resume = (fault: StoreFault, title: string): AgentCheckSpec =>
  check(title, async ({ options }) => {
    let deaths = 0
    for (let at = 1; at <= 200; at++) {
      const place = new AgentScene(options)
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
  })

export const resumeChecks: AgentChecks = {
  'before-each-write': resume(
    'dies',
    'The process dies before each of its writes; another process finishes the run and no call runs twice',
  ),
  'after-each-write': resume(
    'dies_after',
    'The process dies after each of its writes; another process finishes the run and no call runs twice',
  ),
}
