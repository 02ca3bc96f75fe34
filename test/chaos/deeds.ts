import { listAnswerableCalls } from '../../machines/agent/questions.js'
import type { Agent, AgentContext, GrantOptions, PendingCall, Run } from '../../src/index.js'
import type { World } from './world.js'

/** A person or program with access to the run. */
export interface Hands {
  world: World
  agent: Agent
  run: Run
  /** The run's abort signal. */
  abort: AbortController
}

type Deed = (hands: Hands) => unknown

const half = '\ud83d'

/** The pending calls, and how they wait. */
function waiting(run: Run, needs: 'approval' | 'client'): string[] {
  const { context } = run.snapshot() as { context: AgentContext }
  return listAnswerableCalls(context).flatMap((call) => (call.needs === needs ? [call.callId] : []))
}

const approve = ({ run }: Hands): void => {
  for (const id of waiting(run, 'approval')) run.approve(id)
}
const output = ({ run }: Hands, value: unknown): void => {
  for (const id of waiting(run, 'client')) run.addToolOutput(id, value)
}

/** Actions of people and programs on a run, at any time. */
export const deeds = {
  cancels: ({ run }) => run.cancel('Enough.'),
  aborts: ({ abort }) => abort.abort(new Error(`Gone ${half}.`)),
  'aborts with nothing': ({ abort }) => abort.abort(null),
  pauses: ({ run }) => run.pause(),
  resumes: ({ run }) => run.resume(),
  steers: ({ run }) => run.steer(`Mind the gap ${half}.`),
  'steers without a word': ({ run }) => run.steer(' '),
  approves: approve,
  'approves twice': (hands) => {
    for (const id of waiting(hands.run, 'approval')) {
      hands.run.approve(id)
      hands.run.approve(id)
    }
  },
  'approves with other arguments': ({ run }) => {
    for (const id of waiting(run, 'approval')) run.approve(id, { n: 2, why: half })
  },
  'approves with no arguments at all': ({ run }) => {
    for (const id of waiting(run, 'approval')) run.approve(id, 7n)
  },
  'approves what was never asked': ({ run }) => run.approve('call_1', undefined, { fingerprint: 'forged' }),
  rejects: ({ run }) => {
    for (const id of waiting(run, 'approval')) run.reject(id, `No ${half}.`)
  },
  'answers to nothing': ({ run }) => run.addToolOutput('nobody', 1),
  'brings an output': (hands) => output(hands, { ok: half }),
  'brings a BigInt': (hands) => output(hands, 1n),
  'brings an error': (hands) => output(hands, new Error('The client failed.')),
  replies: ({ run }) => run.reply('More, please.'),
  'replies junk': ({ run }) => run.reply([{ content: [] }]),
  looks: ({ run }) => [run.isNearBudget(), JSON.stringify(run.snapshot()), run.state],
  'subscribes and throws': ({ run }) => {
    run.events$.subscribe(() => {
      throw new Error('A subscriber fails.')
    })
  },
  'subscribes to everything': ({ run }) => {
    run.text$.subscribe({ next: () => undefined, error: () => undefined })
    run.state$.subscribe({ next: () => undefined, error: () => undefined })
  },
  'iterates and stops': async ({ run }) => {
    for await (const event of run) if (event.type === 'stream_chunk') break
  },
  'runs a second time at once': async ({ agent, world }) => {
    const run = agent.run('Me, too.', { session: 'chaos' })
    world.cancelOthers.push(() => run.cancel('Enough.'))
    await run.result
  },
} satisfies Record<string, Deed>

export type DeedName = keyof typeof deeds

export const deedNames = Object.keys(deeds) as DeedName[]

/** The behavior of the people who must answer a run. */
export const manners = ['approve', 'reject', 'edit', 'come late', 'answer twice', 'stay away'] as const

/** `grant` also approves later calls of the tool. */
export type Manner = (typeof manners)[number] | 'grant'

/** The action at a wait that continues the run. */
export async function attend(hands: Hands, manner: Manner): Promise<void> {
  const { world, run } = hands
  if (manner === 'stay away') return run.cancel('Nobody came.')
  if (manner === 'come late') await world.sleep(3_600_000)
  if (run.state === 'PAUSED') return world.below(3) === 0 ? run.steer('Go on.') : run.resume()
  const { context, value } = run.snapshot() as { context: AgentContext; value: unknown }
  if (JSON.stringify(value).includes('message'))
    return world.below(2) === 0 ? run.reply('And?') : run.cancel()
  for (const { callId, needs, hosted, ...terms } of listAnswerableCalls(context)) {
    const by = nextApprover(terms)
    if (needs === 'client') run.addToolOutput(callId, 'from the client')
    else if (needs === 'elicitation') run.addToolOutput(callId, answerTo(manner))
    else if (manner === 'reject') run.reject(callId, 'No.', by)
    else if (manner === 'edit' && !hosted) run.approve(callId, { n: 3 }, by)
    else run.approve(callId, undefined, { ...by, ...(manner === 'grant' && grantWith({ hosted, ...terms })) })
    if (manner !== 'answer twice') continue
    const again = (): unknown =>
      needs === 'elicitation'
        ? run.addToolOutput(callId, answerTo(manner))
        : run.approve(callId, undefined, by)
    attempt(again)
  }
}

/** Each approval of a question with approvers is another person's. */
export function nextApprover({ approvers, approvals = [] }: Pick<PendingCall, 'approvers' | 'approvals'>): {
  by?: string
} {
  return approvers ? { by: `person ${approvals.length + 1}` } : {}
}

/** Two more calls with any arguments. Only the last approver can give a grant, for a call that the agent runs itself. */
export function grantWith({
  approvers = [],
  approvals = [],
  path,
  hosted,
}: Pick<PendingCall, 'approvers' | 'approvals' | 'path'> & { hosted?: true | undefined }): {
  grant?: GrantOptions
} {
  const isLast = approvers.every(({ count = 1 }) => approvals.length + 1 >= count)
  return isLast && path === undefined && hosted !== true ? { grant: { when: {}, uses: 2 } } : {}
}

/** A person's answer to an elicitation. */
export function answerTo(manner: Manner): object {
  return manner === 'reject' ? { action: 'decline' } : { action: 'accept', content: { seat: '12A' } }
}

function attempt(deed: () => unknown): void {
  try {
    deed()
  } catch {
    // It is rejected, as expected.
  }
}
