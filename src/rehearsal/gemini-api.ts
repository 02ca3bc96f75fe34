import * as z from 'zod'
import { parseJsonOr } from '../core/base/json.js'
import { type Answer, sign, type ProviderApi } from './planned-response.js'
import {
  type ChatRequest,
  createAssistantMessage,
  parseRequest,
  separateResults,
  type WireMessage,
} from './chat-request.js'
import type { RequestProblem } from './request-problem.js'

const pathPattern = /^\/v1beta\/models\/(.+):(generateContent|streamGenerateContent)$/

export const geminiApi: ProviderApi = {
  name: 'gemini',
  idPrefix: 'gemini-rehearsal-',
  readRequest(sent, path) {
    const [, model = '', method] = pathPattern.exec(path) ?? []
    const request = parseRequest(geminiRequest, sent)
    return toChatRequest(request, decodeURIComponent(model), method === 'streamGenerateContent')
  },
  listProblems: (sent, { model }) => listUnsignedCalls(sent, model),
  formatRefusal: ({ status, code, message }) => formatError(status, undefined, `${code}: ${message}`),
  toBody: (answer) => ({
    ...toChunk(answer, toParts(answer).flat(), getFinishReason(answer)),
    ...toUsage(answer),
  }),
  toStream: (answer) => ({
    opening: [],
    deltas: toParts(answer).map((parts) => toChunk(answer, parts)),
    end: answer.hasFinish
      ? [{ ...toChunk(answer, [{ text: '' }], getFinishReason(answer)), ...toUsage(answer) }]
      : [],
    toFailure: ({ type, message }) => formatError(500, type, message),
    formatEvent: (event) => `data: ${JSON.stringify(event)}\r\n\r\n`,
  }),
  toError: (error, status) => formatError(status === 200 ? 500 : status, error?.type, error?.message),
}

export const isGeminiPath = (path: string): boolean => pathPattern.test(path)

/** Parts by delta. Calls are not split. With thoughts, Gemini signs the first call. */
function toParts({ reasoning, text = '', refusal = '', calls, split }: Answer): object[][] {
  return [
    ...split(reasoning).map((piece) => [{ text: piece, thought: true }]),
    ...split(text + refusal).map((piece) => [{ text: piece }]),
    ...calls.map(({ name, arguments: input }, i) => {
      const functionCall = { name, args: parseJsonOr(input, { invalid: input }) }
      return [{ functionCall, ...(i === 0 && { thoughtSignature: signCall(functionCall) }) }]
    }),
  ]
}

function toChunk({ id, model }: Answer, parts: object[], finishReason?: string): object {
  const content = { role: 'model', parts }
  return {
    candidates: [{ content, index: 0, ...(finishReason !== undefined && { finishReason }) }],
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

function getFinishReason({ finishReason = 'stop', hasFinish }: Answer): string | undefined {
  return hasFinish ? (finishReasons[finishReason] ?? finishReason) : undefined
}

/** Gemini counts thoughts separately from the answer. */
function toUsage({ usage }: Answer): object {
  if (usage === null) return {}
  const { input, output, cached, reasoning } = usage
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

const statusNames: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}

function formatError(code: number, status = statusNames[code] ?? 'UNKNOWN', message = 'The request failed.') {
  return { error: { code, message, status } }
}

const signCall = ({ name, args }: { name: string; args?: unknown }): string =>
  sign(JSON.stringify([name, args ?? {}]))

/** Gemini accepts this value for calls it did not make. */
const anySignature = 'skip_thought_signature_validator'

/** A signed call must come back signed. Gemini 3 requires it of the first call of each batch in the current turn. */
function* listUnsignedCalls(sent: unknown, model: string): Generator<RequestProblem> {
  const { contents } = parseRequest(geminiRequest, sent)
  const turn = contents.findLastIndex(
    ({ role, parts }) => role === 'user' && parts.some(({ text }) => text !== undefined),
  )
  for (const [i, { role, parts }] of contents.entries()) {
    const at = parts.findIndex(({ functionCall }) => functionCall !== undefined)
    const { functionCall, thoughtSignature: signature } = parts[at] ?? {}
    if (i < turn || role !== 'model' || functionCall === undefined) continue
    const isSigned = signature === signCall(functionCall) || signature === anySignature
    if (isSigned || (signature === undefined && !model.startsWith('gemini-3'))) continue
    const param = `contents[${i}].parts[${at}]`
    yield { param, message: `${param}: Function call is missing a thought_signature in functionCall parts.` }
  }
}

const part = z.looseObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  thoughtSignature: z.string().optional(),
  functionCall: z.looseObject({ name: z.string(), args: z.looseObject({}).optional() }).optional(),
  functionResponse: z.looseObject({ name: z.string(), response: z.looseObject({}).optional() }).optional(),
})
const parts = z.array(part).min(1)

const geminiRequest = z.looseObject({
  contents: z.array(z.looseObject({ role: z.enum(['user', 'model']), parts })).min(1),
  systemInstruction: z.looseObject({ parts }).optional(),
  tools: z
    .array(
      z.looseObject({
        functionDeclarations: z.array(z.looseObject({ name: z.string() })).optional(),
      }),
    )
    .optional(),
})

interface GeminiRequest extends z.infer<typeof geminiRequest> {}

type Part = z.infer<typeof part>

/** Converts the request to Chat Completions. Gemini's calls have no ids, so they get ids by position. */
function toChatRequest(request: GeminiRequest, model: string, stream: boolean): ChatRequest {
  const { contents, systemInstruction, tools } = request
  let batch = 0
  const messages = contents.flatMap(({ role, parts: content }): WireMessage[] =>
    role === 'model'
      ? [toAssistantMessage(content, ++batch)]
      : separateResults(
          content,
          ({ functionResponse }) => functionResponse !== undefined,
          ({ functionResponse }, i) => ({
            id: toCallId(batch, i),
            content: formatResult(functionResponse?.response),
          }),
          toContent,
        ),
  )
  const declared = (tools ?? []).flatMap(({ functionDeclarations = [] }) => functionDeclarations)
  return {
    model,
    messages: [
      ...(systemInstruction ? [{ role: 'system' as const, content: joinText(systemInstruction.parts) }] : []),
      ...messages,
    ],
    stream,
    ...(declared.length > 0 && {
      tools: declared.map((one) => ({ type: 'function', function: { ...one } })),
    }),
  }
}

function toAssistantMessage(content: readonly Part[], batch: number): WireMessage {
  const calls = content.flatMap(({ functionCall }) => (functionCall ? [functionCall] : []))
  return createAssistantMessage(
    content.flatMap(({ text, thought }) => (text === undefined || thought ? [] : [text])),
    calls.map(({ name, args = {} }, i) => ({ id: toCallId(batch, i), name, input: args })),
  )
}

function toCallId(batch: number, index: number): string {
  return `call_${batch}_${index + 1}`
}

function formatResult(response: Record<string, unknown> = {}): string {
  const content = response['content'] ?? response['output'] ?? response
  return typeof content === 'string' ? content : JSON.stringify(content)
}

function toContent(items: readonly Part[]): string | { type: string }[] {
  if (items.every(({ text }) => text !== undefined)) return items.map(({ text }) => text).join('\n\n')
  return items.map((one) =>
    one.text === undefined ? { type: 'media', ...one } : { type: 'text', text: one.text },
  )
}

function joinText(items: readonly Part[]): string {
  return items.map(({ text = '' }) => text).join('')
}
