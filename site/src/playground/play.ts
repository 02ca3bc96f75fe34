import {
  type Agent,
  type AgentEvent,
  createAgent,
  createEventFormatter,
  memoryStore,
  type ModelProvider,
  openaiChat,
  type Run,
  StatewrightError,
  type StoreError,
} from '../../../src/index.js'
import { parseScenario, type Scenario, RehearsalError } from '../../../src/rehearsal/scenario.js'
import { forkableStates } from '../../../src/studio/session-query.js'
import { createMomentView } from '../../../src/studio/moment-view.js'
import type { MomentView } from '../../../src/studio/protocol.js'
import { SessionFold } from '../../../src/studio/session-fold.js'
import type { LogRecord } from '../../../src/core/sessions/store/store.js'
import type { Draft } from './examples.ts'
import { type Mark, markPath, readJson } from './json-places.ts'
import { createScriptedFetch, type Pace } from './scripted-fetch.ts'
import { tools } from './tools.ts'

/** An OpenAI-compatible API that replaces the script. The key stays in memory. */
export interface Endpoint {
  baseURL: string
  model: string
  key: string
}

/** The errors in a draft, by the text that contains them. */
export interface Faults {
  script: Mark[]
  settings: Mark[]
}

export interface Prepared {
  scenario: Scenario
  settings: object
}

/** Checks a draft with the rules of `startRehearsal` and `createAgent`. */
export function checkDraft({ script, settings }: Draft): { faults: Faults; prepared: Prepared | null } {
  const [read, options] = [readJson(script), readJson(settings)]
  const faults: Faults = { script: read.marks, settings: options.marks }
  let scenario: Scenario | null = null
  if (read.marks.length === 0) {
    try {
      scenario = parseScenario(read.value, 'The script')
    } catch (error) {
      if (!(error instanceof RehearsalError)) throw error
      faults.script.push(markPath(script, error.subject ?? '', error.message))
    }
  }
  if (options.marks.length === 0) {
    const isObject =
      typeof options.value === 'object' && options.value !== null && !Array.isArray(options.value)
    try {
      if (!isObject) throw new Error('The settings must be an object, such as {"limits": {"maxSteps": 5}}.')
      const reserved = ['model', 'tools', 'store', 'clock'].find((key) => key in (options.value as object))
      if (reserved !== undefined)
        faults.settings.push(markPath(settings, reserved, `The playground sets ${reserved}. Remove it here.`))
      else createAgent({ prices: null, ...(options.value as object), model: unasked, tools })
    } catch (error) {
      const path = error instanceof StatewrightError ? (error.subject ?? '') : ''
      const message = error instanceof Error ? error.message : String(error)
      faults.settings.push(
        markPath(settings, path, message.replace(/^Invalid configuration:\s*/, '').replaceAll(/\s+/g, ' ')),
      )
    }
  }
  const isSound = scenario !== null && faults.settings.length === 0
  return { faults, prepared: isSound && scenario ? { scenario, settings: options.value as object } : null }
}

/** A model for agents that are only validated. */
const unasked: ModelProvider = {
  provider: 'playground',
  model: 'script',
  request: () => Promise.reject(new Error('This model is only for validation.')),
}

/** Sessions of this page. They are lost when the page closes. */
const store = memoryStore()

interface PlayOptions extends Prepared {
  endpoint: Endpoint | null
  pace: Pace
  /** The first turn of the script. */
  start: number
}

/** One session on the page. It is a played run or a pasted log. */
export class Play {
  readonly title: string
  readonly fold: SessionFold
  /** The equivalent output of the command line. */
  output = ''
  /** Whether work is in progress. */
  isRunning = false
  /** The error from starting the run or reading the log, or null. */
  problem: string | null = null
  /** A notice about a session without errors. */
  hint = ''
  readonly #options: PlayOptions | null
  readonly #agent: Agent | null
  readonly #changed: () => void
  /** The session that this what-if forks, and the record where the fork starts. */
  #origin: { play: Play; seq: number } | null = null
  #run: Run | null = null
  #id: string
  #reading: Promise<void> = Promise.resolve()

  constructor(title: string, id: string, options: PlayOptions | null, changed: () => void) {
    this.title = title
    this.#id = id
    this.#options = options
    this.#changed = changed
    this.fold = new SessionFold(id)
    this.#agent =
      options && createAgent({ prices: null, ...options.settings, model: createModel(options), tools, store })
  }

  /** Whether the session's runs accept answers and forks. */
  get isOurs(): boolean {
    return this.#agent !== null
  }

  /** Whether the answers come from the script instead of a provider. */
  get isScripted(): boolean {
    return this.#options?.endpoint === null
  }

  /** Runs the script on an input. */
  start(input: string): void {
    if (this.#agent) void this.#follow(() => this.#agent?.run(input, { session: this.#id }) as Run)
  }

  /** Continues a forked session. */
  resume(): void {
    void this.#follow(async () => (await this.#agent?.resume(this.#id)) as Run)
  }

  cancel(): void {
    this.#run?.cancel('Cancelled in the playground.')
  }

  /** Answers the pending request. A paused run continues. */
  answer(how: { approve?: string; reject?: string; resume?: true; reply?: string }): void {
    const run = this.#run
    if (run === null) return
    void this.#follow(() => {
      if (how.approve !== undefined) run.approve(how.approve)
      if (how.reject !== undefined) run.reject(how.reject, 'Rejected in the playground.')
      if (how.reply !== undefined) run.reply(how.reply)
      if (how.resume) run.resume()
      return run
    })
  }

  /** Starts another session with one change, made while record `seen` was shown. */
  async fork(seen: number, edit: ForkEdit, title: string): Promise<Play> {
    if (this.#agent === null || this.#options === null) throw new Error('A pasted log cannot be forked.')
    const place = this.#findEditPlace(seen, edit)
    if (place && place.play !== this) {
      const forked = await place.play.fork(place.seq, edit, title)
      forked.hint = `This session continues from ${place.play.title}, before “${this.title}” started. The change made there is not included.`
      return forked
    }
    const seq = place?.seq ?? seen
    const id = await this.#agent.fork(this.#id, seq, { edit })
    const used = this.fold.rows.filter((row) => row.seq <= seq && isOutcome(this.fold, row.seq)).length
    const forked = new Play(title, id, { ...this.#options, start: this.#options.start + used }, this.#changed)
    forked.#origin = { play: this, seq }
    await forked.#read()
    forked.resume()
    return forked
  }

  /** Adds the records of a pasted log. */
  async show(records: readonly LogRecord[]): Promise<void> {
    await this.fold.addRecords(records)
    const { problem } = this.fold
    this.problem = problem && describeLogProblem(problem, this.fold.head)
  }

  /** The session after one record. Null without records. */
  view(seq: number): MomentView | null {
    const step = this.fold.findStep(seq)
    if (step === null) return null
    return createMomentView(step, {
      tools: undefined,
      instructions: undefined,
      notes: this.fold.notes,
      actions: [],
    })
  }

  /**
   * The session and the record where a fork applies the edit. A what-if does not contain the records before its start. If the edit is
   * in one of those records, the fork replays the original session. Null when record `seen` does not contain the edited value.
   */
  #findEditPlace(seen: number, edit: ForkEdit): { play: Play; seq: number } | null {
    const { play, seq } = this.#origin ?? { play: null, seq: 0 }
    const earlier = play && play.#findEditPlace(seq, edit)
    if (earlier && (earlier.play !== play || earlier.seq < seq)) return earlier
    const own = this.#findEditRecord(seen, edit)
    return own === null ? null : { play: this, seq: own }
  }

  /** The record of this session where a fork applies the edit. Later records are replayed. */
  #findEditRecord(seen: number, edit: ForkEdit): number | null {
    const transcript = this.view(seen)?.transcript ?? []
    const at =
      'message' in edit
        ? transcript.find(({ id }) => id === edit.message)?.forkAt
        : transcript.flatMap(({ calls }) => calls).find(({ id }) => id === edit.call)?.forkAt
    if (at == null) return null
    // The first record of a what-if contains the earlier messages and no run to resume.
    return this.fold.rows.find(({ seq, state }) => seq >= at && forkableStates.has(state))?.seq ?? at
  }

  async #follow(start: () => Run | Promise<Run>): Promise<void> {
    this.isRunning = true
    this.#changed()
    try {
      const run = await start()
      const isNew = this.#run !== run
      this.#run = run
      if (isNew) {
        const format = createEventFormatter({ width: 72 })
        run.events$.subscribe({ next: (event: AgentEvent) => this.#print(format(event)), error: () => {} })
      }
      const { error } = await run.result
      this.problem = error ? error.message : null
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error)
    }
    await this.#read()
    this.isRunning = false
    this.#changed()
  }

  #print(text: string): void {
    this.output = `${this.output}${text}`.slice(-200_000)
    void this.#read()
  }

  /** Reads new records of the log. */
  #read(): Promise<void> {
    this.#reading = this.#readAfter(this.#reading)
    return this.#reading
  }

  async #readAfter(earlier: Promise<void>): Promise<void> {
    await earlier
    const records = store.read(this.#id, { from: this.fold.head + 1 })
    if (records.length > 0) await this.fold.addRecords(records)
    this.#changed()
  }
}

/** The reason that a log is incomplete. The store's advice addresses the operator of the store. */
function describeLogProblem({ code, message }: StoreError, head: number): string {
  if (code !== 'corrupt_log') return message
  const [, why = message] = /^The log of session '[^']*': (.+?)\. /.exec(message) ?? []
  const shown = head > 0 ? `The page shows the records up to ${head}.` : 'None of its records can be shown.'
  return `This log is damaged: ${why}. ${shown}`
}

export type ForkEdit = { message: string; content: string } | { call: string; result: string }

/** Whether a record contains the result of a model request. Each such record used one turn of the script. */
function isOutcome(fold: SessionFold, seq: number): boolean {
  const entry = fold.findStep(seq)?.entry
  return entry?.type === 'event' && /^xstate\.(done|error)\.actor\.(model|conclusion)$/.test(entry.event.type)
}

function createModel({ endpoint, scenario, start, pace }: PlayOptions): ModelProvider {
  if (endpoint === null)
    // No request is sent, because the script answers.
    return openaiChat({
      model: 'script',
      baseURL: 'http://script.invalid/v1',
      fetch: createScriptedFetch(scenario, start, pace),
    })
  const { baseURL, model, key } = endpoint
  return openaiChat({ model, baseURL, ...(key !== '' && { apiKey: key, dangerouslyAllowBrowser: true }) })
}
