import { memoryStore } from '../../src/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { nameOfSurface } from './rules.js'
import { createFolderStore } from './surfaces/cli.js'
import type { Place, Surface, Told, Who } from './surface.js'
import {
  type AgentKind,
  canary,
  closedStandings,
  type Process,
  session,
  type Standing,
  World,
} from './world.js'

/** A surface, used by a person or the operator in a process with this agent, on a session in this state. */
export interface Cell {
  surface: Surface
  agent: AgentKind
  who: Who
  sessionState: Standing
}

export const nameOf = ({ surface, agent, who, sessionState }: Cell): string =>
  [nameOfSurface(surface), surface.does, agent, who, sessionState].join(' · ')

/** The pending call of the test agents, the same in every session. */
export async function question(): Promise<Place['question']> {
  const world = new World(memoryStore())
  await world.bring('waiting')
  const [call] = (await world.processes[0]?.agent.replay(session))?.run?.pending ?? []
  world.end()
  if (!call) throw new Error('Nothing waits.')
  const { callId, fingerprint, messageId } = call
  return { callId, fingerprint, ...(messageId !== undefined && { messageId }) }
}

/** A cell's outcome, such as `begun` or `refused: stranded`, and the forbidden outcomes of any cell. */
export async function play(cell: Cell, asks: Place['question']): Promise<{ came: string; faults: string[] }> {
  const { cwd, store } =
    cell.surface.agents === 'none' ? await createFolderStore() : { cwd: undefined, store: memoryStore() }
  const world = new World(store)
  try {
    await world.bring(cell.sessionState)
    const grant = cell.surface.does === 'revoke' ? await world.giveGrant() : 'none'
    const process = world.process(cell.agent)
    const before = look(store, process)
    const result = await cell.surface.use({ world, process, who: cell.who, question: asks, grant, cwd })
    world.holderLeaves()
    await world.rest()
    const after = look(store, process)
    return {
      came: inWords(cell, before, after, result),
      faults: faultsOf(cell, { before, after, result, process }),
    }
  } finally {
    world.end()
    store.close()
  }
}

interface Look {
  sessions: number
  records: number
  starts: number
  /** The model's messages in the log. */
  answers: number
  inbox: number
  state: string | undefined
  marks: number
  /** Grants and revocations, in the log or the inbox. */
  grants: number
  revoked: number
  requestCount: number
  paid: number
  /** Log, inbox and state, as stored. */
  stored: string
}

function look(store: SyncSessionStore, { requestCount, paid }: Process): Look {
  const records = store.read(session)
  const unread = store.inbox?.read(session) ?? []
  const texts = [...records.map(({ data }) => data), ...unread.map(({ text }) => text)].join('\n')
  const count = (text: string): number => texts.split(text).length - 1
  return {
    sessions: store.list({ children: true }).length,
    records: records.length,
    starts: records.filter(({ type }) => type === 'start').length,
    answers: records.filter(({ data }) => data.includes('"xstate.done.actor.model"')).length,
    inbox: unread.length,
    state: store.get(session)?.summary?.state ?? undefined,
    marks: store.get(session)?.marks?.length ?? 0,
    grants: count('"grant":{'),
    revoked: count('"type":"REVOKE"'),
    requestCount,
    paid: paid.length,
    stored: JSON.stringify([records, unread, store.get(session)?.summary]),
  }
}

function inWords({ surface, who }: Cell, before: Look, after: Look, { refused, shown }: Told): string {
  const grew = (key: Exclude<keyof Look, 'state' | 'stored'>): boolean => after[key] > before[key]
  const worked = grew('requestCount') || grew('paid') || grew('answers')
  const isGone = before.records > 0 && after.records === 0
  const isOther =
    grew('sessions') &&
    before.records === after.records &&
    (surface.does === 'begin' || surface.does === 'call again')
  const isSeen = surface.does === 'look' && surface.isSilent !== true && refused === null
  const words = [
    ...(refused === null ? [] : [`refused: ${refused}`]),
    ...(grew('sessions') && surface.does.startsWith('fork') ? ['forked'] : []),
    ...(isOther ? ['begun elsewhere'] : grew('starts') ? ['begun'] : worked ? ['gone on'] : []),
    ...(isGone ? ['deleted'] : []),
    ...(grew('inbox') ? ['told'] : []),
    ...(grew('marks') ? ['marked'] : []),
    ...(grew('grants') ? ['grant given'] : []),
    ...(grew('revoked') ? ['grant revoked'] : []),
    ...(!worked && !isGone && after.state !== before.state ? [String(after.state)] : []),
    ...(!worked && !isGone && after.state === before.state && grew('records') ? ['taken up'] : []),
    ...(isSeen && shown.includes(canary) && who !== 'stranger' ? ['shown'] : []),
  ]
  return words.length === 0 ? 'nothing' : words.join(', ')
}

const isClosed = (sessionState: Standing): boolean => closedStandings.some((one) => one === sessionState)

/** Outcomes that are forbidden under every rule. */
function faultsOf(
  { who, surface, sessionState }: Cell,
  { before, after, result, process }: { before: Look; after: Look; result: Told; process: Process },
): string[] {
  const { refused, shown } = result
  const grown = after.records + after.sessions - before.records - before.sessions
  const faults: string[] = []
  const cancelsFirst = surface.of === 'agent.deleteSessions'
  // A request to a session that kills its processes ends it, even if the request is refused.
  if (
    refused !== null &&
    sessionState !== 'poisoned' &&
    (grown !== 0 ||
      after.requestCount > before.requestCount ||
      after.marks > before.marks ||
      (after.inbox > before.inbox && !cancelsFirst))
  )
    faults.push(`it was refused (${refused}), and yet something was done`)
  if (refused !== null && isClosed(sessionState) && after.stored !== before.stored)
    faults.push(`it was refused (${refused}), and the session has changed`)
  if (refused?.startsWith('untyped') || refused === 'internal')
    faults.push(`refused without a type: ${shown}`)
  if (surface.knows === 'people' && (who === 'stranger' || who === 'nobody') && shown.includes(canary))
    faults.push('another person was shown the session')
  if (surface.knows === 'people' && after.grants + after.revoked > before.grants + before.revoked)
    faults.push('a page or a client has changed the grants')
  const strange = process.paid.filter((context) => context !== who && context !== 'initiator')
  if (strange.length > 0 && surface.knows === 'people')
    faults.push(`paid with the rights of ${strange.join(', ')}`)
  if (
    sessionState === 'poisoned' &&
    surface.does !== 'fork and run' &&
    who !== 'stranger' &&
    after.requestCount > before.requestCount
  )
    faults.push('a session that kills was taken up')
  return faults
}
