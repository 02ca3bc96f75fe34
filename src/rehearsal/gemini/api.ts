import { createHash } from 'node:crypto'
import type { Api } from '../api.js'
import { callsOf, countedUsage, endsUnfinished, type Envelope, piecesOf } from '../completion.js'
import type { ChatRequest } from '../request.js'
import type { Speech } from '../response.js'
import type { Turn } from '../turn.js'
import { asChatRequest, readGeminiRequest } from './request.js'

const paths = /^\/v1beta\/models\/(.+):(generateContent|streamGenerateContent)$/

/** Gemini's API: model and stream are in the path. */
export const geminiApi: Api = {
  name: 'gemini',
  idPrefix: 'gemini-rehearsal-',
  read(sent, path) {
    const [, model = '', method] = paths.exec(path) ?? []
    return asChatRequest(
      readGeminiRequest(sent),
      decodeURIComponent(model),
      method === 'streamGenerateContent',
    )
  },
  strictProblem: (sent, { model }) => unsignedCall(sent, model),
  speech,
  refusalBody: ({ status, code, message }) => errorBody(status, undefined, `${code}: ${message}`),
}

export function isGeminiPath(path: string): boolean {
  return paths.test(path)
}

function speech(turn: Turn, request: ChatRequest, envelope: Envelope): Speech {
  return {
    body: () => ({
      ...chunk(envelope, partsOf(turn, envelope).flat(), ending(turn)),
      ...usageOf(turn, request),
    }),
    events: (stop) => eventsOf(turn, request, envelope, stop),
    error: (error, status) => errorBody(status === 200 ? 500 : status, error?.type, error?.message),
  }
}

function eventsOf(turn: Turn, request: ChatRequest, envelope: Envelope, stop: number | undefined): string[] {
  const failure = turn.errorInStream
  const deltas = partsOf(turn, envelope).slice(0, failure?.after ?? stop)
  const events: object[] = deltas.map((parts) => chunk(envelope, parts, null))
  if (failure) events.push(errorBody(500, failure.error.type, failure.error.message))
  else if (stop === undefined && !endsUnfinished(turn))
    events.push({ ...chunk(envelope, [{ text: '' }], ending(turn)), ...usageOf(turn, request) })
  return events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`)
}

/** Parts by delta: a call comes whole. Of a turn with thoughts, the first call is signed, as Gemini does it. */
function partsOf(turn: Turn, envelope: Envelope): object[][] {
  const { reasoning = '', text = '', refusal = '', chunkSize = 16 } = turn
  const calls = callsOf(turn, envelope).map(({ function: { name, arguments: input } }, i) => {
    const call = { functionCall: { name, args: parsed(input) } }
    return i === 0 ? { ...call, thoughtSignature: signatureOf(call.functionCall) } : call
  })
  return [
    ...piecesOf(reasoning, chunkSize).map((piece) => [{ text: piece, thought: true }]),
    ...piecesOf(text + refusal, chunkSize).map((piece) => [{ text: piece }]),
    ...calls.map((call) => [call]),
  ]
}

function chunk({ id, model }: Envelope, parts: object[], finishReason: string | null): object {
  return {
    candidates: [
      { content: { role: 'model', parts }, index: 0, ...(finishReason !== null && { finishReason }) },
    ],
    modelVersion: model,
    responseId: id,
  }
}

const finishReasons: Readonly<Record<string, string>> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
}

function ending(turn: Turn): string | null {
  const { finishReason = 'stop' } = turn
  return endsUnfinished(turn) ? null : (finishReasons[finishReason] ?? finishReason)
}

/** Thoughts are beside the tokens of the answer here, not in them. */
function usageOf(turn: Turn, request: ChatRequest): object {
  if (turn.usage === null) return {}
  const { input, output, cached, reasoning } = countedUsage(turn, request)
  return {
    usageMetadata: {
      promptTokenCount: input,
      candidatesTokenCount: Math.max(0, output - reasoning),
      totalTokenCount: input + output,
      ...(cached > 0 && { cachedContentTokenCount: cached }),
      ...(reasoning > 0 && { thoughtsTokenCount: reasoning }),
    },
  }
}

const statuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}

function errorBody(
  code: number,
  status = statuses[code] ?? 'UNKNOWN',
  message = 'The request failed.',
): object {
  return { error: { code, message, status } }
}

function signatureOf(call: { name: string; args?: unknown }): string {
  const said = JSON.stringify([call.name, call.args ?? {}])
  return createHash('sha256').update(`rehearsal:${said}`).digest('base64')
}

/** What Gemini takes in the place of a signature, for calls that it did not make. */
const anySignature = 'skip_thought_signature_validator'

/**
 * A call that came with a signature comes back with that one, and to Gemini 3 not without: the first of each batch, of the turn
 * that is under way.
 */
function unsignedCall(sent: unknown, model: string): ReturnType<Api['strictProblem']> {
  const { contents } = readGeminiRequest(sent)
  const turn = contents.findLastIndex(
    ({ role, parts }) => role === 'user' && parts.some(({ text }) => text !== undefined),
  )
  for (const [i, { role, parts }] of contents.entries()) {
    const at = parts.findIndex(({ functionCall }) => functionCall !== undefined)
    const call = parts[at]
    if (i < turn || role !== 'model' || call?.functionCall === undefined) continue
    if ([signatureOf(call.functionCall), anySignature].includes(call.thoughtSignature ?? '')) continue
    if (call.thoughtSignature === undefined && !model.startsWith('gemini-3')) continue
    const param = `contents[${i}].parts[${at}]`
    return { param, message: `${param}: Function call is missing a thought_signature in functionCall parts.` }
  }
  return null
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return { invalid: text }
  }
}
