import type { AnyActorRef, AnyStateMachine } from 'xstate'
import type { Principal } from '../../machines/agent/principal.js'
import { internalsByAgent } from '../core/agent/agent-internals.js'
import { ConfigError, UsageError } from '../core/base/errors.js'
import { checkOptions, methodRule, type OptionRules } from '../core/config/check-options.js'
import { readSender } from '../core/sessions/principal.js'
import { checkStore } from '../core/sessions/store/checked-store.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import type { ContextCarrier, WithContext } from '../core/tools/tool.js'
import { type AttachableRun, AttachedRuns } from './attached-runs.js'
import { EmbeddedActors } from './embedded-actors.js'
import { LiveFeed } from './live-feed.js'
import { Prefetcher } from './prefetch.js'
import { SessionActions, type StudioAgent } from './session-actions.js'
import { SavedViews } from './saved-views.js'
import { SessionCatalogue } from './session-catalogue.js'
import { SessionLibrary } from './session-library.js'
import { editorUrl, isWebAddress, type StatelyOptions } from './studio-page.js'
import { serveStudio } from './studio-server.js'
import { createBudgetReader, StudioViews } from './studio-views.js'

export interface StudioOptions<Context = unknown> {
  /** The store to show. Defaults to the agent's store. */
  store?: SessionStore
  /** Resumes sessions when a user answers. Without an agent, the studio is read-only. */
  agent?: StudioAgent & ContextCarrier<Context>
  /** The app's context object, passed to tools when the studio resumes a run. */
  context?: unknown
  /** The person who answers in this studio, recorded in the log with each answer. */
  by?: string | Principal
  /** A custom machine to show instead of the agent's chart. */
  machine?: AnyStateMachine
  /** Port on 127.0.0.1. Defaults to 0, which is any free port. */
  port?: number
  /** The name that the page shows for the store. */
  title?: string
  /** A JSON file for the saved views of the list. By default, they are kept as long as the studio runs. */
  viewsFile?: string
  /** Options for Stately's editor, which then also shows the runs, in a frame loaded from the editor's site. */
  stately?: StatelyOptions
}

export interface Studio {
  /**
   * The address to open in a browser on this machine. The address works for one browser, which can then read and answer
   * sessions. For another browser, read `url` again.
   */
  readonly url: string
  /**
   * Shows a run in this process live, including its text. Returns immediately. A run that has ended is shown from its
   * log. An actor of `agent.machine` is shown under its run id, from its start or from its current state. Its
   * records stay in memory until the studio closes. The actor is not started.
   *
   * @example
   * const studio = await startStudio({ store: memoryStore() })
   * studio.attach(agent.run('What changed?'))
   * studio.attach(createActor(agent.machine, { input: 'What changed?' }).start())
   * await studio.close()
   * @throws {UsageError} `invalid_input` for any other value, including an actor of another machine
   */
  attach(run: AttachableRun | AnyActorRef): void
  /** Stops listening. Runs continue. Can be called more than once. */
  close(): Promise<void>
}

/**
 * Starts a page on 127.0.0.1, behind a token, that shows the sessions in a store. The page shows each run on the chart,
 * record by record. With an agent, users can answer waiting sessions and fork from any record. Secrets are removed, and
 * uncleared content is not shown. The studio keeps the process alive until it is closed.
 *
 * @example
 * const store = memoryStore()
 * const studio = await startStudio({ store })
 * console.log(studio.url)
 * await studio.close()
 * @throws {ConfigError} `invalid_config` for an unknown option, or an invalid store, agent, machine or port
 * @throws {StatewrightError} `cannot_listen`
 */
export function startStudio<Context = unknown>(
  options: WithContext<StudioOptions<Context>, NoInfer<Context>>,
): Promise<Studio>
export async function startStudio(options: StudioOptions): Promise<Studio> {
  const checked = checkOptions('startStudio(options)', options ?? {}, optionRules, configError)
  const { agent, context, by, machine, port = 0, title, viewsFile, stately } = checked
  if (stately?.editor !== undefined && !isWebAddress(stately.editor))
    throw configError(`stately.editor must be an address such as ${editorUrl}.`, 'stately.editor')
  const store = checked.store ?? (agent && internalsByAgent.get(agent)?.store)
  checkStore(store)
  if (store === undefined)
    throw configError(
      'startStudio() needs a store: startStudio({ store }), or an agent with a store.',
      'store',
    )
  if (agent && internalsByAgent.has(agent) && !internalsByAgent.get(agent)?.store) {
    const text =
      'This agent has no store, so it cannot resume stored sessions. Create it with createAgent({ store }).'
    throw configError(text, 'agent')
  }
  const runs = new AttachedRuns()
  const embedded = new EmbeddedActors()
  const library = new SessionLibrary(embedded.addTo(store), (id) => runs.has(id))
  const catalogue = new SessionCatalogue(library)
  const feed = new LiveFeed(catalogue, runs)
  const sender = readSender({ by }, 'startStudio()')
  const actions = new SessionActions({ agent, context, ...sender, library, runs, embedded, store })
  const editor = stately && { url: stately.editor ?? editorUrl, withContext: stately.withContext === true }
  const views = new StudioViews(catalogue, actions, {
    store: title ?? 'sessions',
    machine,
    editor,
    readBudgets: createBudgetReader(store),
    savedViews: new SavedViews(viewsFile),
  })
  const prefetcher = new Prefetcher(catalogue)
  const server = await serveStudio({ views, actions, feed, prefetcher, editor: editor?.url }, port)
  // Draws the chart in advance. The request for the chart reports errors.
  views.getChart().catch(() => undefined)
  let closing: Promise<void> | undefined
  return {
    get url() {
      return server.url()
    },
    attach: (run) => {
      runs.attach(isActor(run) ? embedded.attach(run) : checkRun(run))
    },
    close: () => {
      embedded.close()
      return (closing ??= server.close())
    },
  }
}

const optionRules: OptionRules<StudioOptions> = {
  store: null,
  agent: methodRule(['resume', 'fork'], 'an agent from createAgent()'),
  context: null,
  by: null,
  machine: methodRule(['getStateNodeById'], 'an XState 5 machine from createMachine()'),
  port: null,
  title: null,
  viewsFile: null,
  stately: null,
}

const configError = (message: string, key: string): ConfigError =>
  new ConfigError('invalid_config', message, key)

function isActor(run: AttachableRun | AnyActorRef): run is AnyActorRef {
  return isMethod(run, 'getSnapshot')
}

function checkRun(run: AttachableRun | null | undefined): AttachableRun {
  if (run && isMethod(run.events$, 'subscribe')) return run
  const text = 'attach() takes a run, which agent.run() returns, or an actor of agent.machine.'
  throw new UsageError('invalid_input', text, 'run')
}

const isMethod = (value: unknown, name: string): boolean =>
  typeof (value as Record<string, unknown> | null | undefined)?.[name] === 'function'
