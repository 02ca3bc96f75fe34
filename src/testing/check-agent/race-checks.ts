import { formatCount } from '../../core/format/format-words.js'
import type { Message } from '../../../machines/agent/messages.js'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import { expectTrue } from '../check-assertions.js'
import { type AgentCheckSpec, type AgentChecks, check, expectNormal, isNormal } from './agent-check.js'
import { callOf, describeEnd, endOf, nextTask, sessionId, textsOf } from './agent-scene.js'
import type { AgentProcess, AgentScene } from './agent-scene.js'
import { say, turns } from './scripted-model.js'
import type { PendingCall, RunResult } from '../../../machines/agent/run-result.js'
import type { Run } from '../../core/run/run.js'
import type { LogRecord, SessionStore } from '../../core/sessions/store/store.js'

const manyRuns = 50

const atOnce = (title: string, areTwo: boolean): AgentCheckSpec =>
  check(title, async (scene) => {
    const first = scene.open(turns())
    const second = areTwo ? scene.open(turns()) : first
    const tries = await Promise.all([
      trySaying(first, 'The first message.'),
      trySaying(second, 'The second message.'),
    ])
    const answered = tries.filter(({ isAnswered }) => isAnswered)
    const ends = tries.map(({ end }) => end).join('; ')
    expectTrue(answered.length > 0, `neither message was answered (${ends})`)
    const before = scene.requests.length
    expectNormal(await first.say(scene.input))
    const received = textsOf(scene.requests[before]?.messages ?? [], 'user').join('\n')
    const lost = answered.find(({ text }) => !received.includes(text))?.text
    expectTrue(lost === undefined, `${JSON.stringify(lost)} was answered but is not in the next request`)
    return answered.length === 2 ? 'both were answered' : 'one was answered, and the other was refused'
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
  const tool = scene.variedTool
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
  const { length } = scene.executions
  expectTrue(length === manyRuns, `${formatCount(length, 'call')} of ${manyRuns} runs were executed`)
  return formatCount(scene.requests.length, 'request')
}

export const concurrencyChecks: AgentChecks = {
  'two-runs': atOnce('Two simultaneous messages in one session are each answered or refused', false),
  'two-processes': atOnce('Two processes send a message to one session at the same time', true),
  'many-runs': check(`${manyRuns} concurrent runs each receive the results of their own calls`, runMany),
}

interface Waiting {
  scene: AgentScene
  process: AgentProcess
  run: Run
  call: PendingCall
}

async function untilAsked(scene: AgentScene): Promise<Waiting> {
  const process = scene.open(turns(callOf(scene.askingTool)))
  const run = process.start(scene.input)
  const result = await process.rest(run)
  const [call] = result.pending ?? []
  expectTrue(call !== undefined, `no person was asked: ${describeEnd(result)}`)
  expectTrue(scene.executions.length === 0, 'the call was executed before a person was asked')
  return { scene, process, run, call }
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

async function answerAgain(scene: AgentScene, answer: (run: Run) => void): Promise<RunResult> {
  const process = scene.open(turns())
  return answerAtRest(process, await process.resume(), answer)
}

async function answerAtRest(process: AgentProcess, run: Run, answer: (run: Run) => void): Promise<RunResult> {
  await process.rest(run)
  answer(run)
  return process.rest(run)
}

const approvals = (title: string, run: (waiting: Waiting) => Promise<string>): AgentCheckSpec =>
  check(title, async (scene) => run(await untilAsked(scene)))

function expectRuns(scene: AgentScene, times: number, result: RunResult): string {
  const { length } = scene.executions
  expectTrue(length === times, `the call was executed ${length} times, not ${times} (${describeEnd(result)})`)
  return `executed ${formatCount(length, 'time')}, ${endOf(result)}`
}

function withOtherArguments(store: SessionStore, call: PendingCall): SessionStore {
  const argumentsText = JSON.stringify(call.arguments).slice(1, -1)
  const other = argumentsText.replace(/[a-z0-9](?=[^a-z0-9]*$)/i, (letter) => (letter === 'x' ? 'y' : 'x'))
  const alter = (record: LogRecord) => ({ ...record, data: record.data.replaceAll(argumentsText, other) })
  return { ...store, read: async (id, range) => (await store.read(id, range)).map(alter) }
}

export const approvalChecks: AgentChecks = {
  'approved-twice': approvals('A call approved twice at once is executed once', async (asked) => {
    const { scene, process, run, call } = asked
    refusalOf(() => run.approve(call))
    const second = refusalOf(() => run.approve(call))
    const result = await process.rest(run)
    return `${expectRuns(scene, 1, result)}; the second answer: ${second ?? 'accepted'}`
  }),
  refused: approvals('A rejected call is not executed, and the model receives the reason', async (asked) => {
    const { scene, process, run, call } = asked
    run.reject(call, 'Not before Monday.')
    const seen = expectRuns(scene, 0, await process.rest(run))
    const read = JSON.stringify(scene.requests.at(-1)?.messages)
    expectTrue(read.includes('Not before Monday.'), 'the model did not receive the reason')
    return seen
  }),
  'refused-then-approved': approvals(
    'A call rejected and approved at once is not executed',
    async (asked) => {
      const { scene, process, run, call } = asked
      run.reject(call, 'No.')
      refusalOf(() => run.approve(call))
      return expectRuns(scene, 0, await process.rest(run))
    },
  ),
  late: approvals('A call approved after a cancel is not executed', async (asked) => {
    const { scene, process, run, call } = asked
    run.cancel('Enough.')
    const result = await process.rest(run)
    refusalOf(() => run.approve(call))
    await nextTask(10)
    return expectRuns(scene, 0, result)
  }),
  'after-death': approvals('A call approved after the process died is executed once', async (asked) => {
    const { scene, process, call } = asked
    process.die()
    const result = await answerAgain(scene, (run) => run.approve(call))
    return expectRuns(scene, 1, result)
  }),
  'refused-after-death': approvals(
    'A call rejected after the process died is not executed',
    async (asked) => {
      const { scene, process, call } = asked
      process.die()
      const result = await answerAgain(scene, (run) => run.reject(call, 'No.'))
      return expectRuns(scene, 0, result)
    },
  ),
  'two-processes': approvals('A call approved by two processes at once is executed once', async (asked) => {
    const { scene, process, call } = asked
    process.die()
    const ends = await Promise.allSettled([1, 2].map(() => answerAgain(scene, (run) => run.approve(call))))
    const [result] = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
    expectTrue(result !== undefined, 'neither process could continue the session')
    return expectRuns(scene, 1, result)
  }),
  altered: approvals('A call with altered arguments in the stored state is not executed', async (asked) => {
    const { scene, process, call } = asked
    process.die()
    const next = scene.open(turns(), {}, withOtherArguments(scene.store, call))
    const approve = (run: Run): void => void refusalOf(() => run.approve(call))
    // Only the resume may be refused. A later error breaks the check.
    const resumed = await next
      .resume()
      .catch((error: unknown) => (error instanceof StatewrightError ? error.code : String(error)))
    const end =
      typeof resumed === 'string' ? resumed : describeEnd(await answerAtRest(next, resumed, approve))
    const approved = JSON.stringify(scene.askingTool.input(0))
    const wrong = scene.executions.find(({ input }) => JSON.stringify(input) !== approved)
    expectTrue(wrong === undefined, `executed with ${JSON.stringify(wrong?.input)} (${end})`)
    expectTrue((await scene.store.read(sessionId)).length > 0, 'there was no stored state')
    return end
  }),
}
