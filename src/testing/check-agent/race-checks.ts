import { formatCount } from '../../core/format/format-words.js'
import type { Message } from '../../../machines/agent/messages.js'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import { expectTrue } from '../check-assertions.js'
import {
  type AgentCheckSpec,
  callOf,
  describeEnd,
  expectNormal,
  isNormal,
  say,
  toolOf,
  turns,
  askingToolOf,
  endOf,
} from './agent-check.js'
import { type AgentProcess, type AgentScene, textsOf, nextTask, sessionId } from './agent-scene.js'
import type { PendingCall, RunResult } from '../../../machines/agent/run-result.js'
import type { Run } from '../../core/run/run.js'
import type { SessionStore } from '../../core/sessions/store/store.js'

const manyRuns = 50

/** Sends two messages at the same time, to one process or to two. */
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
    expectTrue(
      answered.length > 0,
      `neither message was answered (${tries.map(({ end }) => end).join('; ')})`,
    )
    const before = scene.requests.length
    expectNormal(await first.say(scene.input))
    const received = textsOf(scene.requests[before]?.messages ?? [], 'user').join('\n')
    const lost = answered.find(({ text }) => !received.includes(text))?.text
    expectTrue(lost === undefined, `${JSON.stringify(lost)} was answered but is not in the next request`)
    return answered.length === 2 ? 'both were answered' : 'one was answered, and the other was refused'
  },
})

/** Sends a message. The session may be busy, so the run can be refused. */
async function trySaying(process: AgentProcess, text: string) {
  try {
    const result = await process.say(text)
    return { text, isAnswered: isNormal(result), end: describeEnd(result) }
  } catch (error) {
    return { text, isAnswered: false, end: describeError(error) }
  }
}

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
    `${formatCount(scene.executions.length, 'call')} of ${manyRuns} runs were executed`,
  )
  return formatCount(scene.requests.length, 'request')
}

export const concurrencyChecks: readonly AgentCheckSpec[] = [
  atOnce('two-runs', 'Two simultaneous messages in one session are each answered or refused', false),
  atOnce('two-processes', 'Two processes send a message to one session at the same time', true),
  {
    class: 'concurrency',
    name: 'many-runs',
    title: `${manyRuns} concurrent runs each receive the results of their own calls`,
    needs: ['tool', 'variety'],
    run: runMany,
  },
]

interface Waiting {
  process: AgentProcess
  run: Run
  call: PendingCall
}

async function untilAsked(scene: AgentScene): Promise<Waiting> {
  const process = scene.open(turns(callOf(askingToolOf(scene))))
  const run = process.start(scene.input)
  const result = await process.rest(run)
  const [call] = result.pending ?? []
  expectTrue(call !== undefined, `no person was asked: ${describeEnd(result)}`)
  expectTrue(scene.executions.length === 0, 'the call was executed before a person was asked')
  return { process, run, call }
}

function refusalOf(answer: () => void): string | null {
  try {
    answer()
    return null
  } catch (error) {
    if (error instanceof StatewrightError) return error.code
    throw error
  }
}

async function takeOver(scene: AgentScene, { process }: Waiting): Promise<{ next: AgentProcess; run: Run }> {
  process.die()
  const next = scene.open(turns())
  const run = await next.resume()
  await next.rest(run)
  return { next, run }
}

const approvals = (
  name: string,
  title: string,
  run: (scene: AgentScene, waiting: Waiting) => Promise<string>,
): AgentCheckSpec => ({
  class: 'approvals',
  name,
  title,
  needs: ['askingTool'],
  run: async (scene) => run(scene, await untilAsked(scene)),
})

function expectRuns(scene: AgentScene, times: number, result: RunResult): string {
  const { length } = scene.executions
  expectTrue(length === times, `the call was executed ${length} times, not ${times} (${describeEnd(result)})`)
  return `executed ${formatCount(length, 'time')}, ${endOf(result)}`
}

function withOtherArguments(store: SessionStore, call: PendingCall): SessionStore {
  const argumentsText = JSON.stringify(call.arguments).slice(1, -1)
  const other = argumentsText.replace(/[a-z0-9](?=[^a-z0-9]*$)/i, (letter) => (letter === 'x' ? 'y' : 'x'))
  return {
    ...store,
    read: async (id, range) =>
      (await store.read(id, range)).map((record) => ({
        ...record,
        data: record.data.replaceAll(argumentsText, other),
      })),
  }
}

export const approvalChecks: readonly AgentCheckSpec[] = [
  approvals(
    'approved-twice',
    'A call approved twice at once is executed once',
    async (scene, { process, run, call }) => {
      refusalOf(() => run.approve(call))
      const second = refusalOf(() => run.approve(call))
      const result = await process.rest(run)
      return `${expectRuns(scene, 1, result)}; the second answer: ${second ?? 'accepted'}`
    },
  ),
  approvals(
    'refused',
    'A rejected call is not executed, and the model receives the reason',
    async (scene, { process, run, call }) => {
      run.reject(call, 'Not before Monday.')
      const seen = expectRuns(scene, 0, await process.rest(run))
      const read = JSON.stringify(scene.requests.at(-1)?.messages)
      expectTrue(read.includes('Not before Monday.'), 'the model did not receive the reason')
      return seen
    },
  ),
  approvals(
    'refused-then-approved',
    'A call rejected and approved at once is not executed',
    async (scene, waiting) => {
      const { process, run, call } = waiting
      run.reject(call, 'No.')
      refusalOf(() => run.approve(call))
      return expectRuns(scene, 0, await process.rest(run))
    },
  ),
  approvals(
    'late',
    'A call approved after a cancel is not executed',
    async (scene, { process, run, call }) => {
      run.cancel('Enough.')
      const result = await process.rest(run)
      refusalOf(() => run.approve(call))
      await nextTask(10)
      return expectRuns(scene, 0, result)
    },
  ),
  approvals(
    'after-death',
    'A call approved after the process died is executed once',
    async (scene, waiting) => {
      const { next, run } = await takeOver(scene, waiting)
      run.approve(waiting.call)
      return expectRuns(scene, 1, await next.rest(run))
    },
  ),
  approvals(
    'refused-after-death',
    'A call rejected after the process died is not executed',
    async (scene, waiting) => {
      const { next, run } = await takeOver(scene, waiting)
      run.reject(waiting.call, 'No.')
      return expectRuns(scene, 0, await next.rest(run))
    },
  ),
  approvals(
    'two-processes',
    'A call approved by two processes at once is executed once',
    async (scene, waiting) => {
      waiting.process.die()
      const ends = await Promise.allSettled(
        [1, 2].map(async () => {
          const process = scene.open(turns())
          const run = await process.resume()
          await process.rest(run)
          run.approve(waiting.call)
          return process.rest(run)
        }),
      )
      const [result] = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
      expectTrue(result !== undefined, 'neither process could continue the session')
      return expectRuns(scene, 1, result)
    },
  ),
  approvals(
    'altered',
    'A call with altered arguments in the stored state is not executed',
    async (scene, waiting) => {
      waiting.process.die()
      const next = scene.open(turns(), {}, withOtherArguments(scene.store, waiting.call))
      const end = await next.resume().then(
        async (run) => {
          await next.rest(run)
          refusalOf(() => run.approve(waiting.call))
          return describeEnd(await next.rest(run))
        },
        (error: unknown) => (error instanceof StatewrightError ? error.code : String(error)),
      )
      const approved = JSON.stringify(askingToolOf(scene).input(0))
      const altered = scene.executions.filter(({ input }) => JSON.stringify(input) !== approved)
      expectTrue(altered.length === 0, `executed with ${JSON.stringify(altered[0]?.input)} (${end})`)
      expectTrue((await scene.store.read(sessionId)).length > 0, 'there was no stored state')
      return end
    },
  ),
]
