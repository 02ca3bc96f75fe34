import type { Message } from '../../../machines/agent/messages.js'
import { describeError } from '../../core/base/describe-error.js'
import { expectTrue } from '../check-assertions.js'
import { formatPlural } from '../evaluate/report-words.js'
import {
  type AgentCheckSpec,
  callOf,
  describeEnd,
  expectNormal,
  isNormal,
  say,
  toolOf,
  turns,
} from './agent-check.js'
import { type AgentProcess, type AgentScene, textsOf } from './agent-scene.js'

const manyRuns = 50

/** Two messages that come at once, each to a process of its own or both to one. */
const atOnce = (name: string, title: string, areTwo: boolean): AgentCheckSpec => ({
  class: 'concurrency',
  name,
  title,
  async run(scene) {
    const first = scene.open(turns())
    const second = areTwo ? scene.open(turns()) : first
    const tries = await Promise.all([
      trySaying(first, 'The first message.'),
      trySaying(second, 'The second message.'),
    ])
    const answered = tries.filter(({ isAnswered }) => isAnswered)
    expectTrue(answered.length > 0, `neither was answered (${tries.map(({ end }) => end).join('; ')})`)
    const before = scene.requests.length
    expectNormal(await first.say(scene.input))
    const said = textsOf(scene.requests[before]?.messages ?? [], 'user').join('\n')
    const lost = answered.find(({ text }) => !said.includes(text))?.text
    expectTrue(lost === undefined, `${JSON.stringify(lost)} was answered, and is not in the next request`)
    return answered.length === 2 ? 'both were answered' : 'one was answered, the other told no'
  },
})

/** Says it, and tells what came of it: the session may be refused to this run. */
async function trySaying(process: AgentProcess, text: string) {
  try {
    const result = await process.say(text)
    return { text, isAnswered: isNormal(result), end: describeEnd(result) }
  } catch (error) {
    return { text, isAnswered: false, end: describeError(error) }
  }
}

/** The number of the run that a request is of, by what the user says there. */
const numberOf = (messages: readonly Message[]): number =>
  Number(/run number (\d+)/.exec(textsOf(messages, 'user').join('\n'))?.[1] ?? 0)

async function runMany(scene: AgentScene): Promise<string> {
  const tool = toolOf(scene)
  scene.behave = ({ input }) => `The result for ${JSON.stringify(input)}`
  const process = scene.open((_, { messages }) =>
    messages.at(-1)?.role === 'tool' ? say() : callOf(tool, numberOf(messages)),
  )
  const numbers = Array.from({ length: manyRuns }, (_, number) => number)
  const results = await Promise.all(
    numbers.map((number) =>
      process.say(`${scene.input} This is run number ${number}.`, { session: `many-${number}` }),
    ),
  )
  for (const result of results) expectNormal(result)
  for (const { messages } of scene.requests) {
    const number = numberOf(messages)
    const own = JSON.stringify(tool.input(number))
    const foreign = textsOf(messages, 'tool').find((text) => !text.includes(own))
    expectTrue(foreign === undefined, `run ${number} reads ${JSON.stringify(foreign)}`)
  }
  expectTrue(
    scene.executions.length === manyRuns,
    `${formatPlural(scene.executions.length, 'call')} of ${manyRuns} runs were executed`,
  )
  return formatPlural(scene.requests.length, 'request')
}

/** Runs beside each other: none reads what is another's, and no message that was answered is lost. */
export const concurrencyChecks: readonly AgentCheckSpec[] = [
  atOnce('two-runs', 'Two messages at once in one session: each has its answer, or is told no', false),
  atOnce('two-processes', 'Two processes with a message each for one session at once', true),
  {
    class: 'concurrency',
    name: 'many-runs',
    title: `${manyRuns} runs at once: each reads the results of its own calls`,
    needs: ['tool', 'variety'],
    run: runMany,
  },
]
