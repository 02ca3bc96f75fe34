import { getOrCreate, memoize } from '../core/base/values.js'
import { StatewrightError } from '../core/base/errors.js'
import { shorten } from '../core/format/format-words.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { AttachedRuns } from './attached-runs.js'
import { capitalize, formatWord } from './format.js'
import { MomentPacker, unpackMoment } from './pack-moments.js'
import type {
  ExportedSession,
  MomentView,
  PackedMoments,
  RecordRow,
  SessionRow,
  SessionView,
  ShareForm,
  ShownMessage,
} from './protocol.js'
import { startedWorks } from './record-rows.js'
import { SessionActions } from './session-actions.js'
import { drawCard } from './session-card.js'
import { SessionCatalogue } from './session-catalogue.js'
import { drawFilm } from './session-film.js'
import { SessionLibrary } from './session-library.js'
import { createExportedPage, readClient } from './studio-page.js'
import { StudioViews } from './studio-views.js'

/** `texts` includes text from people, models and tools. Defaults to true. */
export interface ShareOptions {
  form: ShareForm
  texts?: boolean
}

/**
 * Exports a session as an HTML file, a picture or a film. The HTML file is the studio's page with the session's data,
 * and makes no requests. Secrets are scrubbed, as in the studio.
 *
 * @throws {StoreError} `unknown_session`, …
 * @throws {StatewrightError} `no_page` if the package was not built, `no_film` for a session that cannot be filmed
 */
export async function exportSession(
  store: SessionStore,
  id: string,
  options: ShareOptions = { form: 'page' },
): Promise<string> {
  return renderShared(await createSessionData(store, id), options)
}

/** @throws {StatewrightError} `no_page` if the package was not built, `no_film` for a session that cannot be filmed */
export async function renderShared(
  data: ExportedSession,
  { form, texts = true }: ShareOptions,
): Promise<string> {
  const shared = texts ? data : withoutTexts(data)
  if (form === 'card') return drawCard(shared)
  if (form === 'film') return drawFilm(shared)
  const client = await readClient()
  if (client === null)
    throw new StatewrightError('no_page', 'The studio page was not built. Run npm run build.')
  return createExportedPage(client, shared)
}

export function createSessionData(store: SessionStore, id: string): Promise<ExportedSession> {
  const runs = new AttachedRuns()
  const library = new SessionLibrary(store, () => false)
  const actions = new SessionActions({ library, runs })
  const catalogue = new SessionCatalogue(library)
  return new StudioViews(catalogue, actions, { store: '', machine: undefined }).exportSession(id)
}

/** Keeps states, times, counts and the names of tools and models. An allow list: every kept field is named here. */
export function withoutTexts({ chart, visits, session, moments }: ExportedSession): ExportedSession {
  const tools = listToolNames(moments)
  const numbers = new Map<string, string>()
  const names: Names = {
    toName: (name) => (tools.has(name) ? name : 'call'),
    toId: (id) => getOrCreate(numbers, id, () => `call ${numbers.size + 1}`),
  }
  const packer = new MomentPacker()
  // A message is the same object in all moments that show it.
  const toBare = memoize((message: ShownMessage) => bareMessage(message, names))
  for (const moment of unpackAll(moments)) packer.addMoment(bareMoment(moment, toBare))
  return { chart, visits, session: bareSession(session, names), moments: packer.packed }
}

/** A generator, because holding all moments at once would take too much memory. */
function* unpackAll(packed: PackedMoments): Generator<MomentView> {
  for (const { seq } of packed.moments) {
    const moment = unpackMoment(packed, seq)
    if (moment) yield moment
  }
}

/** Names of the agent's tools. Other names were made up by the model and could contain text. */
function listToolNames(moments: PackedMoments): Set<string> {
  const names = new Set<string>()
  for (const { context } of unpackAll(moments))
    for (const name of Object.keys((context as { tools?: object } | null)?.tools ?? {}))
      names.add(name).add(shorten(name, 60))
  return names
}

interface Names {
  toName: (name: string) => string
  /** Replaces a call id with a number, because a provider or client chose the id. */
  toId: (id: string) => string
}

function bareSession({ session, isPart, verdict, rows, bars, gaps }: SessionView, names: Names): SessionView {
  const { toName } = names
  const { state, reason } = verdict
  return {
    session: bareRow(session),
    readOnly: 'This file is read-only.',
    otherAgent: null,
    isPart,
    verdict: {
      ...verdict,
      answer: '',
      text:
        state === null
          ? ''
          : `${toWords(state)}${reason === null ? '' : `: ${toWords(reason).toLowerCase()}`}.`,
    },
    parent: null,
    rows: rows.map((row) => bareRecord(row, names)),
    bars: bars.map(({ sessionId: _sessionId, ...bar }) => ({
      ...bar,
      label: bar.lane === 'tools' || bar.lane === 'children' ? toName(bar.label) : bareLabel(bar.label),
    })),
    gaps,
    forks: [],
  }
}

function bareRecord(row: RecordRow, { toName, toId }: Names): RecordRow {
  const calls = row.calls.map((call) => ({ ...call, id: toId(call.id), name: toName(call.name) }))
  const invented = row.calls.find(({ name }) => toName(name) !== name)?.name
  const label = bareLabel(row.label)
  return {
    ...row,
    label: invented === undefined ? label : label.replaceAll(invented, toName(invented)),
    started: row.started.map((name) => (startedWorks.has(name) ? name : toName(name))),
    calls,
    ...(row.spent && {
      spent: row.spent.by === 'model' ? row.spent : { ...row.spent, name: toName(row.spent.name) },
    }),
  }
}

/** Labels that contain user-defined names of texts, sessions, agents, skills and shared budgets. */
const namings: readonly [label: RegExp, bare: string][] = [
  [/^(run \d+.*?): .*$/s, '$1'],
  [/^forked from .*$/s, 'forked'],
  [/^handed to .*$/s, 'handed to another agent'],
  [/^skill .* (\w+)$/s, 'skill $1'],
  [/^(.*shared budget) .* (is used up|until [^ ]+.*)$/s, '$1 $2'],
  [/^budget .* (until [^ ]+.*)$/s, 'budget $1'],
]

function bareLabel(label: string): string {
  const naming = namings.find(([pattern]) => pattern.test(label))
  return naming === undefined ? label : label.replace(...naming)
}

/** Converts `WAITING_FOR_INPUT` to `Waiting for input`. */
const toWords = (word: string): string => capitalize(formatWord(word).toLowerCase())

/** Ids are omitted because they can identify people. */
function bareRow(row: SessionRow): SessionRow {
  return {
    ...pick(row, ['status', 'state', 'reason', 'wakeAt', 'steps', 'tokens', 'cost', 'inherited', 'models']),
    ...pick(row, ['duration', 'failedCalls', 'createdAt', 'updatedAt', 'records']),
    // Sessions of machines cannot be exported.
    value: null,
    id: 'session',
    name: null,
    title: 'A session',
    agent: null,
    marks: row.marks.map((mark) => ({ ...mark, note: '' })),
    tags: {},
    holder: null,
    isAttached: false,
    forkedFrom: null,
    parent: null,
    children: 0,
    problem: row.problem === null ? null : "This session's log is damaged.",
  }
}

function pick<T, Key extends keyof T>(value: T, keys: readonly Key[]): Pick<T, Key> {
  return Object.fromEntries(keys.map((key) => [key, value[key]])) as Pick<T, Key>
}

function bareMoment(
  { seq, earlier, transcript, record, context, guards, budget }: MomentView,
  toBare: (message: ShownMessage) => ShownMessage,
): MomentView {
  const { type, event } = (record ?? {}) as { type?: unknown; event?: { type?: unknown } }
  const { state, reason, steps } = (context ?? {}) as Record<string, unknown>
  return {
    seq,
    earlier,
    transcript: transcript.map(toBare),
    record: { type, ...(event && { event: { type: event.type } }) },
    context: { state, reason, steps },
    changed: [],
    guards: guards.map((guard) => ({ ...guard, evidence: '' })),
    budget,
    pending: [],
    grants: [],
    instructions: null,
    actions: [],
  }
}

function bareMessage({ role, id, at, calls, marks }: ShownMessage, { toName, toId }: Names): ShownMessage {
  return {
    role,
    id,
    at,
    forkAt: null,
    text: role === 'assistant' && calls.length > 0 ? '' : leftOut,
    media: [],
    reasoning: '',
    calls: calls.map(({ id: callId, name, result, status, durationMs, decision }) => ({
      id: toId(callId),
      name: toName(name),
      arguments: '',
      result: result === null ? null : leftOut,
      forkAt: null,
      media: [],
      status,
      durationMs,
      decision: decision && { seq: decision.seq, kind: decision.kind, words: '', by: [] },
    })),
    marks,
  }
}

const leftOut = '(omitted)'
