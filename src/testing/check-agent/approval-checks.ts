import type { PendingCall, RunResult } from '../../../machines/agent/run-result.js'
import { StatewrightError } from '../../core/base/errors.js'
import type { Run } from '../../core/run/run.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import { expectTrue } from '../check-assertions.js'
import { formatPlural } from '../evaluate/report-words.js'
import { askingToolOf, type AgentCheckSpec, callOf, describeEnd, endOf, turns } from './agent-check.js'
import { type AgentProcess, type AgentScene, nextTask, sessionId } from './agent-scene.js'

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

/** The code of the refusal of an answer; null: it was taken. */
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
  return `executed ${formatPlural(length, 'time')}, ${endOf(result)}`
}

/** The same store, but what it reads says other arguments of the call. */
function withOtherArguments(store: SessionStore, call: PendingCall): SessionStore {
  const told = JSON.stringify(call.arguments).slice(1, -1)
  const other = told.replace(/[a-z0-9](?=[^a-z0-9]*$)/i, (letter) => (letter === 'x' ? 'y' : 'x'))
  return {
    ...store,
    read: async (id, range) =>
      (await store.read(id, range)).map((record) => ({
        ...record,
        data: record.data.replaceAll(told, other),
      })),
  }
}

/** A call runs once after a yes, and never after a no. */
export const approvalChecks: readonly AgentCheckSpec[] = [
  approvals(
    'approved-twice',
    'Approved twice at once: executed once',
    async (scene, { process, run, call }) => {
      refusalOf(() => run.approve(call))
      const second = refusalOf(() => run.approve(call))
      const result = await process.rest(run)
      return `${expectRuns(scene, 1, result)}; the second answer: ${second ?? 'taken'}`
    },
  ),
  approvals(
    'refused',
    'Refused: not executed, and the model reads why',
    async (scene, { process, run, call }) => {
      run.reject(call, 'Not before Monday.')
      const seen = expectRuns(scene, 0, await process.rest(run))
      const read = JSON.stringify(scene.requests.at(-1)?.messages)
      expectTrue(read.includes('Not before Monday.'), 'the model did not read the reason')
      return seen
    },
  ),
  approvals('refused-then-approved', 'Refused and approved at once: not executed', async (scene, waiting) => {
    const { process, run, call } = waiting
    run.reject(call, 'No.')
    refusalOf(() => run.approve(call))
    return expectRuns(scene, 0, await process.rest(run))
  }),
  approvals('late', 'Approved after a cancel: not executed', async (scene, { process, run, call }) => {
    run.cancel('Enough.')
    const result = await process.rest(run)
    refusalOf(() => run.approve(call))
    await nextTask(10)
    return expectRuns(scene, 0, result)
  }),
  approvals('after-death', 'Approved after the process has died: executed once', async (scene, waiting) => {
    const { next, run } = await takeOver(scene, waiting)
    run.approve(waiting.call)
    return expectRuns(scene, 1, await next.rest(run))
  }),
  approvals(
    'refused-after-death',
    'Refused after the process has died: not executed',
    async (scene, waiting) => {
      const { next, run } = await takeOver(scene, waiting)
      run.reject(waiting.call, 'No.')
      return expectRuns(scene, 0, await next.rest(run))
    },
  ),
  approvals('two-processes', 'Approved by two processes at once: executed once', async (scene, waiting) => {
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
    expectTrue(result !== undefined, 'neither process could go on with the session')
    return expectRuns(scene, 1, result)
  }),
  approvals('altered', 'Other arguments in the stored state: not executed', async (scene, waiting) => {
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
    const given = JSON.stringify(askingToolOf(scene).input(0))
    const altered = scene.executions.filter(({ input }) => JSON.stringify(input) !== given)
    expectTrue(altered.length === 0, `executed with ${JSON.stringify(altered[0]?.input)} (${end})`)
    expectTrue((await scene.store.read(sessionId)).length > 0, 'there was no stored state')
    return end
  }),
]
