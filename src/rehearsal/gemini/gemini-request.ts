import * as z from 'zod'
import { parseRequest, type ChatRequest, type WireMessage } from '../chat-request.js'

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

/** The body of a request to Gemini's `generateContent`. */
export interface GeminiRequest extends z.infer<typeof geminiRequest> {}

export type Part = z.infer<typeof part>

/** @throws Refusal */
export function readGeminiRequest(sent: unknown): GeminiRequest {
  return parseRequest(geminiRequest, sent)
}

/** The request as a Chat Completions request. Gemini's calls have no ids: they get ids by their position. */
export function toChatRequest(request: GeminiRequest, model: string, stream: boolean): ChatRequest {
  const { contents, systemInstruction, tools } = request
  let batch = 0
  const messages = contents.flatMap(({ role, parts: said }): WireMessage[] => {
    if (role === 'model') return [toAssistantMessage(said, ++batch)]
    const results = said.filter(({ functionResponse }) => functionResponse !== undefined)
    const rest = said.filter(({ functionResponse }) => functionResponse === undefined)
    return [
      ...results.map(
        ({ functionResponse }, i): WireMessage => ({
          role: 'tool',
          tool_call_id: toCallId(batch, i),
          content: formatResult(functionResponse?.response),
        }),
      ),
      ...(rest.length > 0 ? [{ role: 'user' as const, content: toContent(rest) }] : []),
    ]
  })
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

function toAssistantMessage(said: readonly Part[], batch: number): WireMessage {
  const calls = said.flatMap(({ functionCall }) => (functionCall ? [functionCall] : []))
  const words = said.filter(({ text, thought }) => text !== undefined && !thought)
  return {
    role: 'assistant',
    content: words.length > 0 ? joinText(words) : null,
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ name, args = {} }, i) => ({
        id: toCallId(batch, i),
        type: 'function' as const,
        function: { name, arguments: JSON.stringify(args) },
      })),
    }),
  }
}

function toCallId(batch: number, index: number): string {
  return `call_${batch}_${index + 1}`
}

function formatResult(response: Record<string, unknown> = {}): string {
  const said = response['content'] ?? response['output'] ?? response
  return typeof said === 'string' ? said : JSON.stringify(said)
}

/** A single text as a text, otherwise parts; other parts stay unchanged. */
function toContent(given: readonly Part[]): string | { type: string }[] {
  if (given.every(({ text }) => text !== undefined)) return given.map(({ text }) => text).join('\n\n')
  return given.map((one) =>
    one.text === undefined ? { type: 'media', ...one } : { type: 'text', text: one.text },
  )
}

function joinText(given: readonly Part[]): string {
  return given.map(({ text = '' }) => text).join('')
}
