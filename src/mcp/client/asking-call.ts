import { truncate } from '../../../guards/lib/words.js'
import type {
  Elicitation,
  ElicitationAnswer,
  ElicitationField,
  ElicitationSchema,
  ElicitationValue,
} from '../../../machines/agent/run-result.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import { listCauses } from '../../core/base/errors.js'
import { parseJsonOr, readProperty } from '../../core/base/json.js'
import { Ask, findAsked } from '../../core/tools/tool-outcomes.js'
import type { ToolExecution } from '../../core/tools/tool.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { quoteText, stripInvisible } from './plain-text.js'
import { createSilenceError } from './server-wire.js'
import { countJson } from './read-result.js'
import { hasUserInfo, isHttpUrl } from '../../core/models/openai/openai-options.js'
import { isRecord } from '../../../guards/lib/stored.js'
import { findFault } from '../../core/sessions/elicitation-answer.js'
import { whenAborted } from '../../core/base/abort.js'
import { systemClock, unrefTimer } from '../../core/base/clock.js'

export interface CallContinuation {
  inputResponses?: Record<string, ElicitationAnswer>
  requestState?: string
}

interface AskingCall extends Pick<CallOptions, 'server' | 'timeoutMs'> {
  execution: Pick<ToolExecution, 'signal' | 'sessionId' | 'idempotencyKey'>
  onProgress: (report: JsonObject) => void
  open: OpenCalls
  isRepeatable: () => boolean
  make: (watch: CallWatch & { continuation: CallContinuation }) => Promise<JsonObject>
}

/** State that is logged while people answer, so that any process can continue the call. */
type Memo =
  /** In revision 2026, the call is made again with the answers and the server's state. */
  | { kind: 'input'; round: number; keys: string[]; state?: string }
  /** In earlier revisions, the call stays open in the process that made it. */
  | { kind: 'open'; round: number; question: string; known: KnownAnswer[] }
  /** The server refuses the call until certain pages have been opened. */
  | { kind: 'pages'; round: number }

/** Maximum characters of a question, and of the server's state and keys, because they are written to the log. */
const maxLogged = 65_536

/**
 * Continues a call whose server has requested input, or makes a new one. An `Ask` lets the run rest until people have
 * answered.
 * @throws like the call, and a ToolError for a question that cannot be shown
 */
export async function makeAskingCall(call: AskingCall): Promise<JsonObject | Ask> {
  const { server, execution, timeoutMs } = call
  const earlier = findAsked(execution as ToolExecution)
  const memo = earlier?.memo as Memo | undefined
  const answers = (earlier?.answers ?? []).map(
    (text) => parseJsonOr(text ?? '', { action: 'cancel' }) as ElicitationAnswer,
  )
  const key = `${execution.sessionId} ${execution.idempotencyKey}`
  const name = `The MCP server '${server}'`
  const known = memo?.kind === 'open' ? [...memo.known, [memo.question, answers[0]] as KnownAnswer] : []
  const open = memo?.kind === 'open' ? findOpenCall() : undefined
  if (memo?.kind === 'pages' && answers.some(({ action }) => action !== 'accept'))
    throw new ToolError('failed', `${name} requires a page to be opened first, and the user declined.`)
  const continuation = memo?.kind === 'input' ? toContinuation(memo, answers) : {}
  const make = (watch: CallWatch): Promise<JsonObject> => call.make({ ...watch, continuation })
  const running = open ?? call.open.begin(key, { make, server, timeoutMs, known })
  const outcome = await running.next(execution.signal, call.onProgress)
  try {
    return toReturned(outcome)
  } catch (error) {
    if (!(error instanceof ElicitationFault)) throw error
    throw new ToolError('failed', `${name} asked a person ${error.message}. The call failed.`)
  }

  function findOpenCall(): OpenCall | undefined {
    const found = call.open.find(key)
    const [answer] = answers
    if (found && answer) {
      found.answer(answer)
      return found
    }
    if (call.isRepeatable()) return undefined
    throw new ToolError(
      'failed',
      `Interrupted: ${name} requested input in a process that has ended, which ended the call. Its outcome is unknown. ` +
        'Check before you call it again.',
    )
  }

  function ask(requests: readonly unknown[], next: Memo): Ask {
    const elicitations = requests.map((params) => readElicitation(params, server))
    if (elicitations.length > maxRounds)
      throw new ElicitationFault(`for more than ${maxRounds} things at once`)
    if (next.round > maxRounds) throw askedTooOften()
    return new Ask(elicitations, next as unknown as Json)
  }

  function toReturned(returned: Outcome): JsonObject | Ask {
    const round = (memo?.round ?? 0) + 1
    if ('asks' in returned) {
      const question = JSON.stringify(returned.asks)
      return ask([returned.asks], { kind: 'open', round, question, known: call.isRepeatable() ? known : [] })
    }
    if ('error' in returned) {
      const pages = findPages(returned.error)
      if (pages === undefined) throw returned.error
      const requests = pages.map((page) => ({ ...(page as object), mode: 'url' }))
      return ask(requests, { kind: 'pages', round })
    }
    const { result } = returned
    if (result['resultType'] !== 'input_required') return result
    const state = result['requestState']
    const requests = Object.entries((result['inputRequests'] ?? {}) as Record<string, unknown>)
    const keys = requests.map(([requestKey]) => requestKey)
    if (countJson([keys, state ?? null]) > maxLogged)
      throw new ElicitationFault(`with keys and a state of more than ${maxLogged} characters`)
    const other = requests.find(([, request]) => readProperty(request, 'method') !== 'elicitation/create')
    if (other)
      throw new ElicitationFault(
        `with the method ${quoteText(String(readProperty(other[1], 'method')))}, which this client does not support`,
      )
    if (requests.length === 0) throw new ElicitationFault('for input, but sent no input requests')
    return ask(
      requests.map(([, request]) => readProperty(request, 'params')),
      {
        kind: 'input',
        round,
        keys,
        ...(typeof state === 'string' && { state }),
      },
    )
  }
}

function toContinuation(
  { keys, state }: Extract<Memo, { kind: 'input' }>,
  answers: readonly ElicitationAnswer[],
): CallContinuation {
  const inputResponses = Object.fromEntries(
    keys.map((key, i): [string, ElicitationAnswer] => [key, answers[i] ?? { action: 'cancel' }]),
  )
  return { inputResponses, ...(state !== undefined && { requestState: state }) }
}

/** The pages of an error of the kind `URLElicitationRequired`. */
function findPages(error: unknown): unknown[] | undefined {
  const refusal = listCauses(error).find((cause) => readProperty(cause, 'code') === -32_042)
  const pages = readProperty(readProperty(refusal, 'data'), 'elicitations')
  return Array.isArray(pages) && pages.length > 0 ? pages : undefined
}

/** @throws an Error with JSON-RPC's code for invalid parameters of `elicitation/create` */
export function answerServer(open: OpenCalls, params: unknown): Promise<ElicitationAnswer> {
  try {
    readElicitation(params, '')
  } catch (error) {
    if (!(error instanceof ElicitationFault)) throw error
    throw Object.assign(new Error(`A person cannot be asked ${error.message}.`), { code: -32_602 })
  }
  return open.ask(params as Json)
}

const maxMessage = 4_000
const maxUrl = 2_000

/** Parses the untrusted parameters of `elicitation/create`. @throws {ElicitationFault} */
export function readElicitation(params: unknown, server: string): Elicitation {
  const [mode = 'form', message] = ['mode', 'message'].map((key) => readProperty(params, key))
  if (typeof message !== 'string' || message.trim() === '') throw new ElicitationFault('without a message')
  if (countJson(params as Json) > maxLogged)
    throw new ElicitationFault(`with a request of more than ${maxLogged} characters`)
  const head = { server, message: truncate(stripInvisible(message).trim(), maxMessage) }
  if (mode === 'url') return { ...head, mode, url: readUrl(readProperty(params, 'url')) }
  if (mode === 'form') return { ...head, mode, schema: readForm(readProperty(params, 'requestedSchema')) }
  throw new ElicitationFault(`in the unknown mode ${quoteText(String(mode))}`)
}

function readUrl(url: unknown): string {
  if (String(url).length > maxUrl || !isHttpUrl(url))
    throw new ElicitationFault(
      `to open ${quoteText(String(url).slice(0, 200))}, which is not an http(s) address`,
    )
  if (hasUserInfo(url))
    throw new ElicitationFault('to open an address with a user name, which hides the real host')
  return new URL(url).href
}

/** A request that cannot be shown to a person. The message completes 'The server asks …'. */
export class ElicitationFault extends Error {}

const maxFields = 50
const maxChoices = 200
const maxText = 1_000

/**
 * A form is a flat object of strings, numbers, booleans and choices. The server validates all other keywords.
 * @throws {ElicitationFault} for an unsupported field
 */
function readForm(form: unknown): ElicitationSchema {
  const properties = readProperty(form, 'properties')
  if (readProperty(form, 'type') !== 'object' || !isRecord(properties))
    throw new ElicitationFault('for something that is not an object with fields')
  const entries = Object.entries(properties)
  if (entries.length > maxFields) throw new ElicitationFault(`for more than ${maxFields} fields`)
  const fields = entries.map(([key, field]) => [readKey(key), readField(key, field)] as const)
  const required = readProperty(form, 'required')
  const wanted = Array.isArray(required)
    ? [...new Set(required)].filter((key) => Object.hasOwn(properties, String(key)))
    : []
  return {
    type: 'object',
    properties: Object.fromEntries(fields),
    ...(wanted.length > 0 && { required: wanted as string[] }),
  }
}

function readKey(key: string): string {
  if (key.length > 200 || key === '__proto__' || key !== stripInvisible(key))
    throw new ElicitationFault(`for a field ${quoteText(key.slice(0, 100))}, which forms do not support`)
  return key
}

const types: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'array']
const formats: readonly unknown[] = ['email', 'uri', 'date', 'date-time']
const bounds = ['minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems'] as const

function readField(key: string, definition: unknown): ElicitationField {
  const refuse = (what: string) =>
    new ElicitationFault(`for the field ${quoteText(key.slice(0, 100))}, which ${what}`)
  const read = (name: string): unknown => readProperty(definition, name)
  const type = read('type')
  if (!types.includes(type)) throw refuse('is not a string, number, boolean or choice')
  const field: ElicitationField = { type: type as ElicitationField['type'] }
  for (const name of ['title', 'description'] as const) {
    const text = read(name)
    if (typeof text === 'string' && text.trim() !== '') field[name] = readText(text)
  }
  for (const name of bounds) {
    const bound = read(name)
    if (typeof bound === 'number' && Number.isFinite(bound)) field[name] = bound
  }
  if (formats.includes(read('format')))
    field.format = read('format') as NonNullable<ElicitationField['format']>
  if (type === 'string') Object.assign(field, readChoices(definition, refuse))
  if (type === 'array') {
    const { oneOf, enum: values } = readChoices(read('items'), refuse, 'anyOf')
    if (!oneOf && !values) throw refuse('is a list without choices')
    field.items = { type: 'string', ...(values && { enum: values }), ...(oneOf && { anyOf: oneOf }) }
  }
  const usual = read('default')
  if (usual !== undefined && findFault(field, usual) === false) field.default = usual as ElicitationValue
  return field
}

function readChoices(
  definition: unknown,
  refuse: (what: string) => Error,
  named: 'oneOf' | 'anyOf' = 'oneOf',
): Pick<ElicitationField, 'enum' | 'enumNames' | 'oneOf'> {
  const [values, titled, names] = ['enum', named, 'enumNames'].map((key) => readProperty(definition, key))
  const list = titled ?? values
  if (list === undefined) return {}
  if (!Array.isArray(list) || list.length === 0 || list.length > maxChoices)
    throw refuse(`must have 1 to ${maxChoices} choices`)
  const isTitled = list === titled
  const choices: unknown[] = isTitled ? list.map((one) => readProperty(one, 'const')) : list
  if (!choices.every(isShort)) throw refuse('has choices that are not strings')
  if (isTitled)
    return {
      oneOf: choices.map((value, i) => {
        const title = readProperty(list[i], 'title')
        return { const: value, title: typeof title === 'string' ? readText(title) : value }
      }),
    }
  const hasNames = Array.isArray(names) && names.length === list.length && names.every(isShort)
  return { enum: choices, ...(hasNames && { enumNames: names.map(readText) }) }
}

const isShort = (value: unknown): value is string => typeof value === 'string' && value.length <= maxText
const readText = (text: string): string => truncate(stripInvisible(text).trim(), maxText)

/** Maximum input requests per call. */
const maxRounds = 10

/** How long to keep a call that waits for a person or has an unread result, in milliseconds. */
const keptMs = 3_600_000

type Outcome = { result: JsonObject } | { error: unknown } | { asks: Json }

/** A question from the server, and the answer given before the call was made again. */
export type KnownAnswer = readonly [question: string, answer: ElicitationAnswer]

export interface CallWatch {
  signal: AbortSignal
  onProgress: (report: JsonObject) => void
  /** Called when the call becomes a task, because a task's requests have separate timeouts. */
  stopTimer: () => void
}

interface CallOptions {
  make: (watch: CallWatch) => Promise<JsonObject>
  /** Maximum milliseconds without progress. 0 = off. The timer stops while a person is asked. */
  timeoutMs: number
  server: string
  /** The answers that an earlier process received. */
  known: readonly KnownAnswer[]
}

export type OpenCalls = ReturnType<typeof createOpenCalls>

/**
 * The open calls of one server. Before revision 2026, a server requests input in the middle of a call, so the call
 * stays open while the run rests. The call does not survive the process.
 */
export function createOpenCalls() {
  const calls = new Map<string, OpenCall>()
  /** Calls that have not ended, in start order. */
  const live = new Set<OpenCall>()
  return {
    begin(key: string, options: CallOptions): OpenCall {
      const forget = (): void => {
        if (calls.get(key) === call) calls.delete(key)
      }
      const call = openCall(options, { onEnd: () => void live.delete(call), forget })
      calls.set(key, call)
      live.add(call)
      return call
    },
    find: (key: string): OpenCall | undefined => calls.get(key),
    /** The latest call without an open question, because these revisions do not name the call. */
    ask(params: Json): Promise<ElicitationAnswer> {
      const all = [...live]
      const asking = all.findLast((call) => !call.isAsking()) ?? all.at(-1)
      return asking ? asking.ask(params) : Promise.resolve({ action: 'cancel' })
    },
  }
}

type OpenCall = ReturnType<typeof openCall>

function openCall(
  { make, server, timeoutMs, known: earlier }: CallOptions,
  { onEnd, forget }: { onEnd: () => void; forget: () => void },
) {
  const abort = new AbortController()
  const questions: { params: Json; answer: (answer: ElicitationAnswer) => void }[] = []
  /** Each answer is used for one question. If a server repeats a question, it has not accepted the answer. */
  const known = [...earlier]
  let end: Outcome | undefined
  let count = 0
  let isTimed = true
  let wake = (): void => undefined
  let timer: unknown
  let onReport: (report: JsonObject) => void = () => undefined

  const isOver = (): boolean => end !== undefined
  const isAsking = (): boolean => questions.length > 0
  const clearTimer = (): void => systemClock.clearTimeout(timer)

  function limitSilence(): void {
    if (isOver()) return
    clearTimer()
    if (timeoutMs === 0 || !isTimed) return
    timer = systemClock.setTimeout(() => abort.abort(createSilenceError(server, timeoutMs)), timeoutMs)
  }

  /** Calls back after `keptMs`. The timer does not keep the process alive. */
  function keepFor(callback: () => void): void {
    clearTimer()
    timer = systemClock.setTimeout(callback, keptMs)
    unrefTimer(timer)
  }

  function close(outcome: Outcome): void {
    const { reason } = abort.signal as { reason: unknown }
    end = reason instanceof ToolError ? { error: reason } : outcome
    onEnd()
    wake()
    // A run that has ended never reads this result, so the result is dropped later.
    keepFor(forget)
  }

  function answer(given: ElicitationAnswer): void {
    questions.shift()?.answer(given)
    if (!isAsking()) limitSilence()
  }

  limitSilence()
  make({
    signal: abort.signal,
    onProgress: (report) => {
      if (!isAsking()) limitSilence()
      onReport(report)
    },
    stopTimer: () => {
      isTimed = false
      clearTimer()
    },
  }).then(
    (result) => close({ result }),
    (error: unknown) => close({ error }),
  )

  return {
    isOver,
    isAsking,
    answer,
    async next(signal: AbortSignal, onProgress: (report: JsonObject) => void): Promise<Outcome> {
      onReport = onProgress
      const stop = whenAborted(signal, () => abort.abort(signal.reason))
      try {
        if (end === undefined && !isAsking()) await new Promise<void>((resolve) => (wake = resolve))
      } finally {
        stop()
        onReport = () => undefined
      }
      const [question] = questions
      if (end === undefined && question) return { asks: question.params }
      forget()
      clearTimer()
      return end ?? { error: signal.reason }
    },
    ask(params: Json): Promise<ElicitationAnswer> {
      count += 1
      if (count > maxRounds) {
        abort.abort(askedTooOften())
        return Promise.resolve({ action: 'cancel' })
      }
      const text = JSON.stringify(params)
      const at = known.findIndex(([question]) => question === text)
      const [found] = at < 0 ? [] : known.splice(at, 1)
      if (found) return Promise.resolve(found[1])
      return new Promise((resolve) => {
        questions.push({ params, answer: resolve })
        keepFor(() => {
          while (isAsking()) answer({ action: 'cancel' })
        })
        wake()
      })
    },
  }
}

function askedTooOften(): ToolError {
  return new ToolError(
    'failed',
    `The server asked a person more than ${maxRounds} times in one call. The call was cancelled.`,
  )
}
