import { agentMachine } from '../../machines/agent.machine.js'
import type { Agent } from '../core/agent/agent-options.js'
import { limitTime } from '../core/base/abort.js'
import { systemClock } from '../core/base/clock.js'
import { UsageError } from '../core/base/errors.js'
import { stretchMs, yieldToEventLoop } from '../core/base/platform.js'
import { unknownSessionError } from '../core/sessions/store/store-error.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { toMachineJson } from '../diagram/index.js'
import { listStoredBudgets } from '../fleet/create-budget.js'
import { drawChart } from './chart-view.js'
import { type CompareView, createCompareView } from './compare-sessions.js'
import { listAncestors } from './format.js'
import { type MomentOptions, createMomentView } from './moment-view.js'
import { MomentPacker } from './pack-moments.js'
import type {
  BudgetView,
  ChartView,
  EndView,
  ExportedSession,
  MomentView,
  PackedMoments,
  SavedView,
  SessionView,
  SessionsView,
  VisitsView,
} from './protocol.js'
import type { SavedViews } from './saved-views.js'
import { createRequestView, type RequestView } from './request-view.js'
import { createMachineView, type MachineView } from './machine-view.js'
import { formatTerm, type ListRequest } from './session-query.js'
import { latestMessages } from './routes.js'
import type { SessionActions } from './session-actions.js'
import type { SessionCatalogue } from './session-catalogue.js'
import type { SessionFold } from './session-fold.js'
import type { SessionLibrary } from './session-library.js'
import { createVerdict } from './verdict.js'

/** `latest` limits each moment to at least this many of its last messages. */
interface Range {
  first: number
  last: number
  latest?: number | undefined
}

interface ViewParts {
  store: string
  machine: Parameters<typeof drawChart>[0] | Agent['machine']
  editor?: Omit<NonNullable<ChartView['editor']>, 'machine'> | undefined
  readBudgets?: () => Promise<BudgetView[]>
  savedViews?: SavedViews
}

/** For reading logs before a list is shown, in milliseconds. The rest is sent live. */
const readingMs = 100

const maxMoments = 256

/** Enough messages to fill the page until all records have been read. */
const endMessages = 20

/** Number of latest logs to read for counting visits, and the time limit. */
const maxCounted = 200
const countingMs = 2_000

export class StudioViews {
  readonly #library: SessionLibrary
  readonly #catalogue: SessionCatalogue
  readonly #actions: SessionActions
  readonly #parts: ViewParts
  #drawn: Promise<ChartView> | undefined
  readonly #counted = new Map<string, { head: number; visits: ReadonlyMap<string, number> }>()
  #counting: Promise<VisitsView> | undefined

  constructor(catalogue: SessionCatalogue, actions: SessionActions, parts: ViewParts) {
    this.#catalogue = catalogue
    this.#library = catalogue.library
    this.#actions = actions
    this.#parts = parts
  }

  /** @throws {UsageError} `invalid_option` for an invalid query or order */
  async getSessions(list: ListRequest): Promise<SessionsView> {
    await this.#catalogue.refreshSoon(readingMs)
    const found = this.#catalogue.find(list)
    // Opening the budgets would create a store that does not exist yet.
    const budgets = found.known === 0 ? [] : ((await this.#parts.readBudgets?.()) ?? [])
    const views = (await this.#parts.savedViews?.read()) ?? []
    return { store: this.#parts.store, readOnly: this.#actions.readOnly, ...found, budgets, views }
  }

  /** @throws {StatewrightError} `store_unavailable` if the file cannot be written */
  async saveViews({ views }: { views: SavedView[] }): Promise<{ views: SavedView[] }> {
    await this.#parts.savedViews?.write(views)
    return { views }
  }

  async getSession(id: string): Promise<SessionView> {
    return this.#createSessionView(id, await this.#library.readFold(id))
  }

  /** @throws {UsageError} `invalid_option` for the session of an agent */
  async getMachine(id: string): Promise<MachineView> {
    const session = await this.#library.readRow(id)
    if (session === null) throw unknownSessionError(id)
    if (session.value === null)
      throw new UsageError('invalid_option', `Session '${id}' belongs to an agent, not to a machine.`, 'id')
    await this.#catalogue.refreshSoon(readingMs)
    const children = { q: formatTerm('parent', id), sort: '-created', offset: 0, limit: Infinity }
    return createMachineView(
      session,
      await this.#library.readMachine(id),
      this.#catalogue.find(children).sessions,
    )
  }

  async getEnd(id: string): Promise<EndView> {
    const fold = await this.#library.readEnd(id)
    const latest = fold.base > 0 ? endMessages : latestMessages
    return {
      view: await this.#createSessionView(id, fold),
      moment: fold.head === 0 ? null : await this.#createMoment(id, fold, fold.head, latest),
    }
  }

  async #createSessionView(id: string, fold: SessionFold): Promise<SessionView> {
    const session = await this.#library.readRow(id, fold)
    if (session === null) throw unknownSessionError(id)
    const isLost = session.status === 'interrupted'
    return {
      session: {
        ...session,
        models: [...new Set([...session.models, ...fold.models])],
        problem: session.problem ?? fold.problem?.message ?? null,
      },
      readOnly: this.#actions.findRefusal(id),
      otherAgent: this.#actions.describeOtherAgent(id, fold),
      isPart: fold.base > 0,
      verdict: createVerdict(fold),
      // The store may not have the session that called this sub-agent.
      parent: session.parent && ((await this.#library.findRow(session.parent))?.id ?? null),
      rows: fold.rows,
      bars: fold.timeline.bars.map((bar) =>
        isLost && bar.to === null && bar.status === 'running' ? { ...bar, status: 'interrupted' } : bar,
      ),
      gaps: [...fold.timeline.gaps],
      forks: this.#library.listForks(id),
    }
  }

  /** @throws {UsageError} `invalid_option` for a record that does not exist */
  async getMoment(id: string, seq: number): Promise<MomentView> {
    const fold = await this.#library.readFold(id)
    const view = await this.#createMoment(id, fold, seq)
    if (view) return view
    const text = `Session '${id}' has no record ${seq}. Its last record is ${fold.head}.`
    throw new UsageError('invalid_option', text, 'seq')
  }

  /** @throws {UsageError} `invalid_option` for a record that is not the end of a request */
  async getRequest(id: string, { seq, all }: { seq: number; all: boolean }): Promise<RequestView> {
    const fold = await this.#library.readFold(id)
    const view = createRequestView(fold, { seq, all, parts: this.#actions.findParts(fold.now.session) })
    if (view) return view
    const text = `Record ${seq} of session '${id}' is not a model response or a failed request.`
    throw new UsageError('invalid_option', text, 'seq')
  }

  async getMoments(id: string, { first, last, latest }: Range): Promise<PackedMoments> {
    const fold = await this.#library.readFold(id)
    return this.#packMoments(id, fold, { first, last: Math.min(last, first + maxMoments - 1), latest })
  }

  async #packMoments(id: string, fold: SessionFold, { first, last, latest }: Range): Promise<PackedMoments> {
    const packer = new MomentPacker()
    let until = performance.now() + stretchMs
    for (let seq = first; seq <= Math.min(last, fold.head); seq += 1) {
      const view = await this.#createMoment(id, fold, seq, latest)
      if (view) packer.addMoment(view)
      if (performance.now() > until) {
        await yieldToEventLoop()
        until = performance.now() + stretchMs
      }
    }
    return packer.packed
  }

  async #createMoment(
    id: string,
    fold: SessionFold,
    seq: number,
    latest = Infinity,
  ): Promise<MomentView | null> {
    const step = fold.findStep(seq)
    if (step === null) return null
    const { session } = step.after
    const sight: MomentOptions = {
      tools: this.#actions.findTools(id),
      instructions: this.#actions.findInstructions(session),
      notes: fold.notes,
      actions: [],
      latest,
    }
    if (seq < fold.head || fold.problem) return createMomentView(step, sight)
    const isHeld = (await this.#library.findRow(id))?.holder != null
    const view = createMomentView(step, {
      ...sight,
      actions: this.#actions.listPossible(session, { id, isHeld }),
      unread: await this.#actions.listUnread(id, session),
      now: systemClock.now(),
    })
    if (view.grants.some(({ ended }) => ended === null) && this.#actions.canRevoke(id))
      view.actions.push('revoke')
    return view
  }

  async compareSessions(a: string, b: string): Promise<CompareView> {
    const compared = async (id: string) => {
      const fold = await this.#library.readFold(id)
      return {
        view: await this.#createSessionView(id, fold),
        fold,
        instructions: this.#actions.findInstructions(fold.now.session),
      }
    }
    return createCompareView(await compared(a), await compared(b))
  }

  async getChart(): Promise<ChartView> {
    const { machine = agentMachine, editor } = this.#parts
    this.#drawn ??= drawChart(machine)
    const view = await this.#drawn
    return editor
      ? { ...view, editor: { ...editor, machine: JSON.parse(toMachineJson(machine)) as object } }
      : view
  }

  /** Empty for a custom machine. */
  async getVisits(): Promise<VisitsView> {
    if (this.#parts.machine !== undefined) return { sessions: 0, counts: {} }
    return (this.#counting ??= this.#countVisits().finally(() => (this.#counting = undefined)))
  }

  async #countVisits(): Promise<VisitsView> {
    const latest = await this.#library.listPage({ limit: maxCounted })
    const until = performance.now() + countingMs
    const sum = new Map<string, number>()
    let sessions = 0
    for (const { id, records } of latest) {
      if (this.#counted.get(id)?.head !== records && performance.now() < until) {
        // One read of the store at a time.
        const fold = await this.#library.readForCounting(id)
        const visits = new Map<string, number>()
        if (fold) countVisits(visits, fold)
        this.#counted.set(id, { head: records, visits })
      }
      const counted = this.#counted.get(id)
      if (!counted) continue
      sessions += 1
      for (const [what, count] of counted.visits) sum.set(what, (sum.get(what) ?? 0) + count)
    }
    return { sessions, counts: Object.fromEntries(sum) }
  }

  async exportSession(id: string): Promise<ExportedSession> {
    const fold = await this.#library.readFold(id)
    const visits = new Map<string, number>()
    countVisits(visits, fold)
    return {
      chart: await this.getChart(),
      visits: { sessions: 1, counts: Object.fromEntries(visits) },
      session: await this.#createSessionView(id, fold),
      moments: await this.#packMoments(id, fold, { first: 1, last: fold.head }),
    }
  }
}

function countVisits(counts: Map<string, number>, { rows }: Pick<SessionFold, 'rows'>): void {
  const add = (id: string): void => void counts.set(id, (counts.get(id) ?? 0) + 1)
  for (const { from, to, transitionIds } of rows) {
    for (const id of transitionIds) add(id)
    const before = new Set(from.flatMap(listAncestors))
    for (const path of new Set(to.flatMap(listAncestors))) if (!before.has(path)) add(path)
  }
}

/** Maximum time that a list waits for budgets, in milliseconds. Later results appear in the next list. */
const patienceMs = 150

/** Reads the budgets of a store. Empty if the store has no budgets or is unavailable. */
export function createBudgetReader(store: Pick<SessionStore, 'openBudgets'>): () => Promise<BudgetView[]> {
  let known: BudgetView[] = []
  let reading: Promise<void> | null = null
  const refresh = async (): Promise<void> => {
    const { rows } = await listStoredBudgets(store).catch(() => ({ rows: [] }))
    known = rows.flatMap(({ id, limits, spent, reserved, resetsAt }) =>
      (['usd', 'tokens'] as const).flatMap((unit): BudgetView[] => {
        const limit = limits[unit]
        return limit === undefined
          ? []
          : [{ id, unit, spent: spent[unit], reserved: reserved[unit], limit, resetsAt }]
      }),
    )
  }
  return async () => {
    if (!store.openBudgets) return []
    reading ??= refresh().finally(() => (reading = null))
    await limitTime({ ms: patienceMs }, reading).catch(() => undefined)
    return known
  }
}
