import { formatCount } from '../../core/format/format-words.js'
import type { RunResult, PendingCall } from '../../../machines/agent/run-result.js'
import { expectTrue } from '../check-assertions.js'
import {
  AgentScene,
  describeEnd,
  callOf,
  endOf,
  hang,
  NotAsked,
  textsOf,
  nextTask,
  type Behavior,
  type SayOptions,
  sessionId,
  type AgentProcess,
} from './agent-scene.js'
import type { ModelFault, StoreFault, ToolFault } from '../chaos/chaos.js'
import { say, type Turn, turns, type Script, tokensOfTurn } from './scripted-model.js'
import type { Message } from '../../../machines/agent/messages.js'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import type { Run } from '../../core/run/run.js'
import type { LogRecord, SessionStore } from '../../core/sessions/store/store.js'

export interface AgentCheckSpec {
  title: string
  /** Returns what was seen. Calls the tools of the scene before its first run, because the agent may have none. */
  run(scene: AgentScene): Promise<string>
}

type AgentChecks = Readonly<Record<string, AgentCheckSpec>>

const check = (title: string, run: AgentCheckSpec['run']): AgentCheckSpec => ({ title, run })

const isNormal = ({ state, reason }: RunResult): boolean => state === 'COMPLETED' && reason === 'end_turn'

function expectNormal(result: RunResult): void {
  expectTrue(isNormal(result), `it ended ${describeEnd(result)}`)
}

/** @throws CheckFailure if a failure is reported as a normal end */
function expectTold(result: RunResult, after = ''): void {
  expectTrue(!isNormal(result), `reported as a normal end${after} (${describeEnd(result)})`)
}

function expectOneResult({ lastResults }: AgentScene): void {
  expectTrue(lastResults.length === 1, `the model received ${formatCount(lastResults.length, 'result')}`)
}

/** Checks whether the agent works with the scripted model at all. The other checks depend on this. */
const basicChecks: AgentChecks = {
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
      const result = await scene.callOnce()
      expectNormal(result)
      scene.expectExecutions(1, result)
      expectOneResult(scene)
      return `${scene.tool.name}, ${endOf(result)}`
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

const truncationChecks: AgentChecks = {
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

const historyChecks: AgentChecks = {
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

type Cancel = (scene: AgentScene, controller: AbortController) => Promise<RunResult>

const cancel = (title: string, run: Cancel): AgentCheckSpec =>
  check(title, async (scene) => {
    const result = await run(scene, new AbortController())
    const [requests, calls] = [scene.requests.length, scene.executions.length]
    await nextTask(10)
    const end = describeEnd(result)
    expectTrue(scene.requests.length === requests, `a request was made after the end (${end})`)
    expectTrue(scene.executions.length === calls, `a call started after the end (${end})`)
    expectTrue(result.state === 'CANCELLED', `it ended ${end}`)
    return scene.describeRun(result)
  })

const inCall = (title: string, then: Behavior): AgentCheckSpec =>
  cancel(title, async (scene, controller) => {
    const result = await scene.cancelInCall(then, controller)
    scene.expectExecutions(1, result)
    scene.expectRequests(1, result, 1)
    return result
  })

const cancelEarly: Cancel = async (scene, controller) => {
  controller.abort()
  const result = await scene.play(turns(), {}, { signal: controller.signal })
  scene.expectRequests(0, result)
  return result
}

const cancelWhileStalled: Cancel = async (scene, controller) => {
  const process = scene.open(turns(), { model: [{ at: 1, fault: 'stalled' }] })
  const run = process.start(scene.input, { signal: controller.signal })
  await process.untilFault()
  controller.abort()
  return run.result
}

const cancelInRetry: Cancel = async (scene, controller) => {
  const process = scene.open(turns(), { model: [{ at: 1, fault: 'overloaded' }] })
  if (process.agent.config.retry.maxAttempts <= 1) throw new NotAsked('the agent does not retry')
  const run = process.start(scene.input, { signal: controller.signal })
  // Cancels immediately, because some agents retry after a millisecond or less.
  run.events$.subscribe({
    next: ({ type }) => {
      if (type === 'retry') controller.abort()
    },
    error: () => undefined,
  })
  const result = await run.result
  scene.expectRequests(1, result, 1)
  return result
}

const keepResult: Cancel = async (scene, controller) => {
  const { name, input } = scene.tool
  const calls = ['paid', 'lost'].map((id, n) => ({ name, input: input(n), id }))
  scene.behave = async (execution, signal) => {
    if (scene.executions.length === 1) return 'Paid for.'
    // By now, the first call has its result.
    await nextTask(10)
    controller.abort()
    return hang(execution, signal)
  }
  const result = await scene.play(turns({ calls }), {}, { signal: controller.signal })
  scene.expectExecutions(2, result)
  const results = textsOf((await scene.sayAgain()).messages, 'tool')
  const isKept = results.some((text) => text.includes('Paid for.'))
  expectTrue(isKept, `the next request has the results ${JSON.stringify(results)}`)
  return result
}

const cancelChecks: AgentChecks = {
  before: cancel('With a signal that is already aborted, no request is made', cancelEarly),
  'in-answer': cancel('While the model is stalled partway through an answer', cancelWhileStalled),
  'in-call': inCall('During a call that respects the signal', hang),
  'in-deaf-call': inCall('During a call that never ends', () => new Promise(() => undefined)),
  swallowed: inCall('During a call that ignores the abort and returns', () => 'The text.'),
  'in-retry': cancel('While a retry waits', cancelInRetry),
  'result-kept': cancel('If one of two calls has finished, its result is in the next request', keepResult),
}

/** After this many requests, the script answers. A run that reaches this number was not stopped by anything. */
const cap = 300

const capped =
  (script: Script): Script =>
  (at, request) =>
    at > cap ? say("The script's cap.") : script(at, request)

const workOn = (scene: AgentScene, limits: SayOptions['limits'] = {}): Promise<RunResult> => {
  const { tool } = scene
  const script = capped((at) => ({ ...callOf(tool, at), text: `Working on ${at}.` }))
  return scene.play(script, {}, { limits })
}

/** Expects that the run has stopped by itself, which it reports. */
function expectStopped(scene: AgentScene, result: RunResult, advice = ''): string {
  const requests = formatCount(scene.requests.length, 'request')
  expectTrue(scene.requests.length < cap, `${requests}: nothing stopped it${advice} (${describeEnd(result)})`)
  expectTold(result, ` after ${requests}`)
  return scene.describeRun(result)
}

/** Expects that the run makes no more requests than its limits allow, and reports the limit. */
const bounded = (title: string, limits: SayOptions['limits'], hasConclusion: boolean): AgentCheckSpec =>
  check(title, async (scene) => {
    const result = await workOn(scene, limits)
    const isConcluding = hasConclusion && scene.process.agent.config.limits.onLimit === 'conclude'
    scene.expectRequests(isConcluding ? 4 : 3, result)
    expectTold(result)
    return scene.describeRun(result)
  })

const tokensOfStep = tokensOfTurn.input + tokensOfTurn.output

const limitChecks: AgentChecks = {
  steps: bounded('A limit of 3 steps allows 3 requests and is reported', { maxSteps: 3 }, true),
  'own-limit': check("The agent's limits stop a model that calls tools forever", async (scene) =>
    expectStopped(scene, await workOn(scene), '. Set limits.maxSteps'),
  ),
  'token-budget': bounded(
    'A budget of 2.5 steps allows 3 requests and is reported',
    { tokenBudget: tokensOfStep * 2.5 },
    false,
  ),
  'paid-usage': check('Usage before a limit is counted', async (scene) => {
    const result = await workOn(scene, { maxSteps: 2 })
    const used = result.usage.totalTokens
    const due = tokensOfStep * scene.requests.length
    expectTrue(used === due, `${used} tokens are counted, but ${due} were used (${describeEnd(result)})`)
    return `${used} tokens, ${endOf(result)}`
  }),
}

const loops = (title: string, turn: (scene: AgentScene, at: number) => Turn, behave: Behavior) =>
  check(title, async (scene) => {
    // Throws NotAsked here, not inside the model, if the agent has no such tool.
    turn(scene, 1)
    scene.behave = behave
    const result = await scene.play(capped((at) => turn(scene, at)))
    return `stopped after ${expectStopped(scene, result)}`
  })

const fail: Behavior = () => {
  throw new Error('No such file.')
}

const loopChecks: AgentChecks = {
  'same-call': loops(
    'The same call with the same result',
    ({ tool }) => callOf(tool),
    () => 'Nothing new.',
  ),
  'two-calls': loops(
    'Two calls in turn',
    ({ variedTool }, at) => callOf(variedTool, at % 2),
    ({ input }) => `The result of ${JSON.stringify(input)}.`,
  ),
  failing: loops('A call that fails every time', ({ tool }) => callOf(tool), fail),
  'new-arguments': loops(
    'A different call every time, with the same result',
    ({ variedTool }, at) => callOf(variedTool, at),
    () => 'Nothing found.',
  ),
  'no-such-tool': loops(
    'A tool that does not exist',
    () => ({ calls: [{ name: 'no_such_tool' }] }),
    () => '',
  ),
}

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

const concurrencyChecks: AgentChecks = {
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
  scene.expectExecutions(times, result)
  return `executed ${formatCount(times, 'time')}, ${endOf(result)}`
}

function withOtherArguments(store: SessionStore, call: PendingCall): SessionStore {
  const argumentsText = JSON.stringify(call.arguments).slice(1, -1)
  const other = argumentsText.replace(/[a-z0-9](?=[^a-z0-9]*$)/i, (letter) => (letter === 'x' ? 'y' : 'x'))
  const alter = (record: LogRecord) => ({ ...record, data: record.data.replaceAll(argumentsText, other) })
  return { ...store, read: async (id, range) => (await store.read(id, range)).map(alter) }
}

const approvalChecks: AgentChecks = {
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

const faultChecks: AgentChecks = {
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
        const isHit = await dieAt(place, at, fault)
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

const resumeChecks: AgentChecks = {
  'before-each-write': resume(
    'dies',
    'The process dies before each of its writes; another process finishes the run and no call runs twice',
  ),
  'after-each-write': resume(
    'dies_after',
    'The process dies after each of its writes; another process finishes the run and no call runs twice',
  ),
}

export type AgentCheckClass =
  | 'basics'
  | 'truncation'
  | 'history'
  | 'cancel'
  | 'limits'
  | 'loops'
  | 'concurrency'
  | 'approvals'
  | 'faults'
  | 'resume'

/** In the order in which they run. */
export const agentChecks: Readonly<Record<AgentCheckClass, AgentChecks>> = {
  basics: basicChecks,
  truncation: truncationChecks,
  history: historyChecks,
  cancel: cancelChecks,
  limits: limitChecks,
  loops: loopChecks,
  concurrency: concurrencyChecks,
  approvals: approvalChecks,
  faults: faultChecks,
  resume: resumeChecks,
}
