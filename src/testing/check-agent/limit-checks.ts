import { expectTrue } from '../check-assertions.js'
import {
  type AgentCheckSpec,
  callOf,
  describeEnd,
  describeRun,
  endOf,
  expectTold,
  say,
  toolOf,
} from './agent-check.js'
import type { AgentScene, Behavior } from './agent-scene.js'
import { type Script, tokensOfTurn } from './scripted-model.js'

/** The model says something else after so many requests; a run that is still there was stopped by nothing. */
const cap = 300

const capped =
  (script: Script): Script =>
  (at, request) =>
    at > cap ? say('The cap of the script.') : script(at, request)

/** Another call each time. */
const restless = (scene: AgentScene): Script =>
  capped((at) => ({ ...callOf(toolOf(scene), at), text: `Working on ${at}.` }))

const limits = (rest: Omit<AgentCheckSpec, 'class' | 'needs'>): AgentCheckSpec => ({
  class: 'limits',
  needs: ['tool'],
  ...rest,
})

const tokensOfStep = tokensOfTurn.input + tokensOfTurn.output

/** Limits are exact, told, and what was paid for is kept. */
export const limitChecks: readonly AgentCheckSpec[] = [
  limits({
    name: 'steps',
    title: 'A limit of 3 steps allows 3 requests, and is told',
    async run(scene) {
      const process = scene.open(restless(scene))
      // A last request that makes the model conclude is asked for by the agent's author, and is one more.
      const most = process.agent.config.limits.onLimit === 'conclude' ? 4 : 3
      const result = await process.say(scene.input, { limits: { maxSteps: 3 } })
      const { length } = scene.requests
      expectTrue(length <= most, `${length} requests (${describeEnd(result)})`)
      expectTold(result)
      return describeRun(scene, result)
    },
  }),
  limits({
    name: 'own-limit',
    title: "The agent's own limits stop a model that calls for ever",
    async run(scene) {
      const result = await scene.open(restless(scene)).say(scene.input)
      const { length } = scene.requests
      expectTrue(
        length < cap,
        `${length} requests: nothing stopped it. Set limits.maxSteps (${describeEnd(result)})`,
      )
      expectTold(result, ` after ${length} requests`)
      return describeRun(scene, result)
    },
  }),
  limits({
    name: 'token-budget',
    title: 'A budget of 2.5 steps allows 3 requests, and is told',
    async run(scene) {
      const process = scene.open(restless(scene))
      const result = await process.say(scene.input, { limits: { tokenBudget: tokensOfStep * 2.5 } })
      const { length } = scene.requests
      expectTrue(length <= 3, `${length} requests (${describeEnd(result)})`)
      expectTold(result)
      return describeRun(scene, result)
    },
  }),
  limits({
    name: 'paid-usage',
    title: 'What was used before a limit is counted',
    async run(scene) {
      const result = await scene.open(restless(scene)).say(scene.input, { limits: { maxSteps: 2 } })
      const used = result.usage.totalTokens
      const due = tokensOfStep * scene.requests.length
      expectTrue(used === due, `${used} tokens are counted, and ${due} were used (${describeEnd(result)})`)
      return `${used} tokens, ${endOf(result)}`
    },
  }),
]

const loops = (
  name: string,
  title: string,
  script: (scene: AgentScene) => Script,
  behave: Behavior,
  needs: AgentCheckSpec['needs'] = ['tool'],
): AgentCheckSpec => ({
  class: 'loops',
  name,
  title,
  needs,
  async run(scene) {
    scene.behave = behave
    const result = await scene.open(capped(script(scene))).say(scene.input)
    const { length } = scene.requests
    expectTrue(length < cap, `${length} requests: nothing stopped it (${describeEnd(result)})`)
    expectTold(result, ` after ${length} requests`)
    return `stopped after ${describeRun(scene, result)}`
  },
})

/** The same thing for ever. */
export const loopChecks: readonly AgentCheckSpec[] = [
  loops(
    'same-call',
    'The same call, the same result',
    (scene) => () => callOf(toolOf(scene)),
    () => 'Nothing new.',
  ),
  loops(
    'two-calls',
    'Two calls in turn',
    (scene) => (at) => callOf(toolOf(scene), at % 2),
    ({ input }) => `The result of ${JSON.stringify(input)}.`,
    ['tool', 'variety'],
  ),
  loops(
    'failing',
    'A call that fails each time',
    (scene) => () => callOf(toolOf(scene)),
    () => {
      throw new Error('No such file.')
    },
  ),
  loops(
    'new-arguments',
    'Another call each time, the same result',
    (scene) => (at) => callOf(toolOf(scene), at),
    () => 'Nothing found.',
    ['tool', 'variety'],
  ),
  loops(
    'no-such-tool',
    'A tool that does not exist',
    () => () => ({ calls: [{ name: 'no_such_tool' }] }),
    () => '',
    [],
  ),
]
