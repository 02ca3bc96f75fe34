import type { Agent } from '../core/agent/agent-options.js'
import type { Actions } from './actions.js'
import { chartView, countVisits, drawChart, type DrawnChart } from './chart-view.js'
import { compareView } from './compare.js'
import type { SessionFold } from './fold.js'
import type { Library } from './library.js'
import { momentView, type Sight } from './moment.js'
import { Packer } from './packed.js'
import type {
  ChartView,
  CompareView,
  ExportedSession,
  MomentView,
  PackedMoments,
  SessionsView,
  SessionView,
} from './protocol.js'
import { StatewrightError, UsageError } from '../core/base/errors.js'
import { unknownSession } from '../core/sessions/refusals.js'

export type AnyMachine = Parameters<typeof drawChart>[0] | Agent['machine']

/** Milliseconds for reading logs before a list is shown: what is left is told live. */
const readingMs = 100

/** The most moments that are sent at once. */
const mostMoments = 256

/** Logs that are read to say how often sessions were in a state: those written last, and as many as there is time for. */
const mostCounted = 200
const countingMs = 1_000

/** What the page asks for. */
export class Views {
  readonly #library: Library
  readonly #actions: Actions
  readonly #store: string
  readonly #machine: AnyMachine | undefined
  readonly #counted = new Map<string, { head: number; visits: ReadonlyMap<string, number> }>()
  #drawn: Promise<DrawnChart> | undefined

  constructor(
    library: Library,
    actions: Actions,
    { store, machine }: { store: string; machine: AnyMachine | undefined },
  ) {
    this.#library = library
    this.#actions = actions
    this.#store = store
    this.#machine = machine
  }

  async sessions(): Promise<SessionsView> {
    return {
      store: this.#store,
      readOnly: this.#actions.readOnly,
      sessions: await this.#library.rows(readingMs),
    }
  }

  async session(id: string): Promise<SessionView> {
    const fold = await this.#library.fold(id)
    const session = await this.#library.row(id)
    if (session === null) throw unknownSession(id)
    const isLost = session.standing === 'interrupted'
    return {
      session: { ...session, problem: session.problem ?? fold.problem?.message ?? null },
      rows: fold.rows,
      bars: fold.bars.map((bar) =>
        isLost && bar.to === null && bar.status === 'running' ? { ...bar, status: 'interrupted' } : bar,
      ),
      gaps: [...fold.gaps],
      forks: this.#library.forksOf(id),
    }
  }

  /** @throws {UsageError} `invalid_option` for a record that there is not */
  async moment(id: string, seq: number): Promise<MomentView> {
    const fold = await this.#library.fold(id)
    const view = await this.#momentOf(id, fold, seq)
    if (view) return view
    const text = `Session '${id}' has ${fold.head} records; there is no ${seq}.`
    throw new UsageError('invalid_option', text, 'seq')
  }

  async moments(id: string, first: number, last: number): Promise<PackedMoments> {
    const fold = await this.#library.fold(id)
    return this.#packed(id, fold, first, Math.min(last, first + mostMoments - 1))
  }

  async #packed(id: string, fold: SessionFold, first: number, last: number): Promise<PackedMoments> {
    const packer = new Packer()
    for (let seq = first; seq <= Math.min(last, fold.head); seq += 1) {
      // oxlint-disable-next-line no-await-in-loop -- it waits for nothing but the last of them
      const view = await this.#momentOf(id, fold, seq)
      if (view) packer.add(view)
    }
    return packer.packed
  }

  async #momentOf(id: string, fold: SessionFold, seq: number): Promise<MomentView | null> {
    const step = fold.at(seq)
    if (step === null) return null
    const { durations, origin } = fold
    const sight: Sight = { tools: this.#actions.tools, edit: origin?.edit, durations, actions: [] }
    if (seq === fold.head && !fold.problem) {
      const isHeld = (await this.#library.row(id))?.holder != null
      sight.actions = this.#actions.possible(step.after.standing.run?.context ?? null, { id, isHeld })
    }
    return momentView(step, sight)
  }

  async compare(a: string, b: string): Promise<CompareView> {
    const one = { view: await this.session(a), fold: await this.#library.fold(a) }
    const two = { view: await this.session(b), fold: await this.#library.fold(b) }
    return compareView(one, two)
  }

  /** Drawn once, when it is first asked for. */
  async chart(): Promise<ChartView> {
    this.#drawn ??= drawChart(this.#machine)
    const drawn = await this.#drawn
    return chartView(drawn, this.#machine === undefined ? await this.#visits() : new Map())
  }

  async #visits(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#library.rows()
    const until = performance.now() + countingMs
    const latest = rows.toSorted((a, b) => b.updatedAt - a.updatedAt).slice(0, mostCounted)
    const sum = new Map<string, number>()
    for (const { id, records } of latest) {
      if (this.#counted.get(id)?.head !== records && performance.now() < until) {
        // oxlint-disable-next-line no-await-in-loop -- the store is read by one at a time
        const fold = await this.#library.fold(id).catch((error: unknown) => {
          if (error instanceof StatewrightError) return null
          throw error
        })
        const visits = new Map<string, number>()
        if (fold) countVisits(visits, fold)
        this.#counted.set(id, { head: records, visits })
      }
      for (const [what, count] of this.#counted.get(id)?.visits ?? [])
        sum.set(what, (sum.get(what) ?? 0) + count)
    }
    return sum
  }

  /** A whole session, to be put into one file. */
  async exported(id: string): Promise<ExportedSession> {
    const session = await this.session(id)
    const fold = await this.#library.fold(id)
    const visits = new Map<string, number>()
    countVisits(visits, fold)
    this.#drawn ??= drawChart(this.#machine)
    return {
      chart: chartView(await this.#drawn, visits),
      session,
      moments: await this.#packed(id, fold, 1, fold.head),
    }
  }
}
