import { setTimeout as sleep } from 'node:timers/promises'
import { agentMachine } from '../../../machines/agent.machine.js'
import { StatewrightError } from '../../core/base/errors.js'
import { printable, shorten } from '../../core/format/words.js'
import type { ListedSession, SessionStore } from '../../core/sessions/store/store.js'
import { SessionFrames } from '../../inspect/session-frames.js'
import { editorUrl, startStately, type StatelyView } from '../../inspect/stately.js'
import type { MachineStates } from '../../inspect/viewer.js'
import { badUsage } from '../cli-error.js'
import type { CliIO, Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { findSession } from '../find-session.js'
import { withSessionStore } from '../open-session-store.js'
import { parseOptions, wholeNumber } from '../options.js'
import { sessionOptionSpecs } from './sessions/options.js'

const options = {
  session: { short: 's', value: 'ID', about: 'the session that is shown' },
  live: { about: 'show what is written while it is: of that session, or of the one written last' },
  context: { about: 'all of the context, texts cut and secrets scrubbed, in place of a few numbers' },
  editor: { value: 'URL', about: `where the editor is (default: ${editorUrl})` },
  port: { short: 'p', value: 'PORT', about: 'the port on 127.0.0.1 (default: any that is free)' },
  ...sessionOptionSpecs,
}

/** How often a session is looked at that is written to. */
const lookMs = 500

export const statelyCommand: Command = {
  name: 'stately',
  about: "Plays a stored session in Stately's editor, in a browser on this machine.",
  positional: '',
  options,
  notes: [
    "The page listens on 127.0.0.1 and holds Stately's editor in a frame, which is told of each record the state, the event's\n" +
      'name, the reason, and how many steps, tokens and USD: no text of anybody, unless --context is given. Where the editor\n' +
      'does not answer within 9 seconds, the page shows our own chart in its place. Ctrl-C ends it.',
    'Examples:\n  statewright stately --session work\n  statewright stately --live',
  ],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    const [extra] = positionals
    if (extra !== undefined)
      throw badUsage(`'${extra}' is too much. A session is named by --session ${extra}.`, extra)
    const wanted = { id: text('session'), isLive: has('live'), withContext: has('context') }
    if (wanted.id === undefined && !wanted.isLive)
      throw badUsage(
        "Which session? Name it with --session ID ('statewright sessions list' shows them), or --live.",
      )
    const port = wholeNumber('--port', text('port'), 0) ?? 0
    if (port > 65_535) throw badUsage(`--port: ${port} is no port; the highest is 65535.`, '--port')
    const editor = editorOf(text('editor'))
    const store = text('store')
    // Before a page is opened: what is not there is said at once.
    if (wanted.id !== undefined)
      await withSessionStore(store, io, (opened) => findSession(opened, wanted.id ?? ''))
    const view = await openView({ port, ...(editor !== undefined && { editor }) })
    try {
      io.stdout.write(`${view.url}\n`)
      io.stderr.write('Open it in a browser on this machine; Ctrl-C ends it.\n')
      await follow(view, wanted, store, io)
    } finally {
      await view.close()
    }
    return exitCodes.completed
  },
}

function editorOf(text: string | undefined): string | undefined {
  if (text === undefined || (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol))) return text
  throw badUsage(`--editor: '${text}' is no address such as ${editorUrl}.`, '--editor')
}

async function openView(place: { port: number; editor?: string }): Promise<StatelyView> {
  const { chartOf, toMachineJson, toOverviewSvg } = await import('../../diagram/index.js')
  const chart = await toOverviewSvg(chartOf(agentMachine))
  const machine = JSON.parse(toMachineJson(agentMachine)) as MachineStates
  return startStately({ machine, chart, ...place })
}

interface Wanted {
  id: string | undefined
  isLive: boolean
  withContext: boolean
}

/** Until somebody interrupts. The store is opened again where there is nothing to follow: it may be made only later. */
async function follow(
  view: StatelyView,
  wanted: Wanted,
  place: string | undefined,
  io: CliIO,
): Promise<void> {
  const { signal } = io
  let shown: Shown | null = null
  let told = ''
  while (!signal.aborted) {
    try {
      await withSessionStore(place, io, async (store) => {
        do {
          shown = await look(view, wanted, store, shown)
          if (wanted.isLive && shown !== null) await pause(signal)
        } while (wanted.isLive && shown !== null && !signal.aborted)
      })
    } catch (error) {
      if (!(error instanceof StatewrightError)) throw error
      const text = printable(error.message)
      if (text !== told) {
        view.tell({ type: 'problem', text })
        io.stderr.write(`statewright: ${text}\n`)
      }
      told = text
    }
    await (wanted.isLive ? pause(signal) : once(signal))
  }
}

interface Shown {
  id: string
  frames: SessionFrames
}

/** Tells what is new of the session that is wanted now; null when there is none yet. */
async function look(
  view: StatelyView,
  { id, isLive, withContext }: Wanted,
  store: SessionStore,
  shown: Shown | null,
): Promise<Shown | null> {
  const session = await (id === undefined ? current(store, shown) : store.get(id))
  if (session === null) return null
  const isSame = shown?.id === session.id
  if (!isSame) view.tell({ type: 'session', title: titleOf(session), isLive })
  const frames = isSame ? shown.frames : new SessionFrames(session.id, withContext)
  for await (const frame of frames.next(store)) view.tell({ type: 'frame', frame })
  return { id: session.id, frames }
}

/** The one that is shown while somebody writes to it, else the one that was written to last. */
async function current(store: SessionStore, shown: Shown | null): Promise<ListedSession | null> {
  const held = shown && (await store.get(shown.id))
  if (held && held.holder !== null) return held
  const [latest] = await store.list()
  return latest ?? null
}

function titleOf({ id, summary }: ListedSession): string {
  const words = summary?.name ?? summary?.title ?? ''
  return words === '' ? id : `${id} · ${shorten(words, 60)}`
}

async function pause(signal: AbortSignal): Promise<void> {
  await sleep(lookMs, undefined, { signal }).catch(() => undefined)
}

function once(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
