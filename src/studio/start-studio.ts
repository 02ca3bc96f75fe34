import type { AnyStateMachine } from 'xstate'
import { internalsByAgent } from '../core/agent/agent-internals.js'
import { ConfigError, UsageError } from '../core/base/errors.js'
import { checkStore } from '../core/sessions/store/checked-store.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { SessionActions, type StudioAgent } from './session-actions.js'
import { Prefetcher } from './prefetch.js'
import { type AttachableRun, AttachedRuns } from './attached-runs.js'
import { SessionLibrary } from './session-library.js'
import { LiveFeed } from './live-feed.js'
import { serveStudio } from './studio-server.js'
import { editorUrl, isWebAddress, type StatelyOptions } from './stately.js'
import { StudioViews } from './studio-views.js'

/** What the studio shows, and who answers in it. */
export interface StudioOptions {
  /** Whose sessions are shown. Default: the agent's. */
  store?: SessionStore
  /** Who goes on with a session when somebody answers it. Default: nobody; then the studio shows, and changes nothing. */
  agent?: StudioAgent
  /** The app's own object, handed to tools when a run goes on from here. */
  context?: unknown
  /** In place of the agent's chart: a machine of your own, as documentation. */
  machine?: AnyStateMachine
  /** The port on 127.0.0.1. Default 0: any that is free. */
  port?: number
  /** What the store is called on the page. */
  title?: string
  /** Shows runs in Stately's editor, too, in a frame that is loaded from its site. */
  stately?: StatelyOptions
}

export interface Studio {
  /**
   * The page to open in a browser on this machine. Whoever opens it first can read the sessions, and answer them; it opens
   * one browser. Read it again for another.
   */
  readonly url: string
  /**
   * Shows a run of this process live, text included. Returns at once; a run that is over shows as its log does.
   *
   * @example
   * const studio = await startStudio({ store: memoryStore() })
   * studio.attach(agent.run('What changed?'))
   * await studio.close()
   */
  attach(run: AttachableRun): void
  /** Stops listening. Runs go on. May be called more than once. */
  close(): Promise<void>
}

/**
 * A page on 127.0.0.1, behind a token, over the sessions of a store: what each run did, record by record, on the chart
 * that it ran on; and, with an agent, answers to those that wait and forks from any of their records. Secrets are
 * scrubbed, and what shields have not cleared is not shown. It keeps the process alive until it is closed.
 *
 * @example
 * const store = memoryStore()
 * const studio = await startStudio({ store })
 * console.log(studio.url)
 * await studio.close()
 * @throws {ConfigError} `invalid_config` for what is no store, agent, machine or port
 * @throws {StatewrightError} `cannot_listen`
 */
export async function startStudio(options: StudioOptions): Promise<Studio> {
  const { store: given, agent, context, machine, port = 0, title, stately } = checkOptions(options)
  const store = given ?? (agent && internalsByAgent.get(agent)?.store)
  checkStore(store)
  if (store === undefined) {
    throw new ConfigError(
      'invalid_config',
      'The studio shows the sessions of a store: startStudio({ store }), or an agent that has one.',
      'store',
    )
  }
  if (agent && internalsByAgent.has(agent) && !internalsByAgent.get(agent)?.store) {
    throw new ConfigError(
      'invalid_config',
      'This agent has no store, so it cannot go on with sessions that are in one: createAgent({ store }).',
      'agent',
    )
  }
  const runs: AttachedRuns = new AttachedRuns(
    (text) => {
      feed.emit(text)
    },
    () => {
      feed.pollSoon()
    },
  )
  const library = new SessionLibrary(store, (id) => runs.has(id))
  const feed = new LiveFeed(library, runs)
  const actions = new SessionActions(agent, context, library, runs)
  const editor = stately && { url: stately.editor ?? editorUrl, withContext: stately.withContext === true }
  const views = new StudioViews(library, actions, { store: title ?? 'sessions', machine, editor })
  const prefetcher = new Prefetcher(library)
  const server = await serveStudio({ views, actions, feed, prefetcher, editor: editor?.url }, port)
  // It is drawn while somebody opens the page; what goes wrong is told to who asks for it.
  views.getChart().catch(() => undefined)
  let closing: Promise<void> | undefined
  return {
    get url() {
      return server.url()
    },
    attach: (run) => {
      checkRun(run)
      runs.attach(run)
    },
    close: () => (closing ??= server.close()),
  }
}

/** Whoever writes JavaScript is told by no compiler. */
function checkOptions(options: StudioOptions | null | undefined): StudioOptions {
  const { agent, machine } = options ?? {}
  const isAgent = agent === undefined || ['resume', 'fork'].every((name) => isMethod(agent, name))
  if (!isAgent) throw new ConfigError('invalid_config', 'agent must be what createAgent() returns.', 'agent')
  if (machine !== undefined && !isMethod(machine, 'getStateNodeById')) {
    const text = 'machine must be a machine of XState 5: what createMachine() returns.'
    throw new ConfigError('invalid_config', text, 'machine')
  }
  const { editor } = options?.stately ?? {}
  if (editor !== undefined && !isWebAddress(editor)) {
    const text = `stately.editor must be an address such as ${editorUrl}.`
    throw new ConfigError('invalid_config', text, 'stately.editor')
  }
  return options ?? {}
}

function checkRun(run: AttachableRun | null | undefined): void {
  if (isMethod(run?.events$, 'subscribe')) return
  throw new UsageError('invalid_input', 'attach() takes a run: what agent.run() returns.', 'run')
}

const isMethod = (value: unknown, name: string): boolean =>
  typeof (value as Record<string, unknown> | null | undefined)?.[name] === 'function'
