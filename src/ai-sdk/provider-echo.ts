import { sha256 } from '../../guards/lib/sha256.js'
import type { Json, JsonObject } from '../../machines/agent/json.js'
import type { AssistantMessage, ProviderItems, ToolCall } from '../../machines/agent/messages.js'
import type { ModelResponse } from '../../machines/agent/model-response.js'
import { asList, asObject, asText } from '../core/base/values.js'
import type { ProviderData } from './spec.js'

/**
 * A part of an answer to send back to its provider. Content that the message contains is referenced instead of
 * repeated: text by its length, files and calls by their index.
 */
export type EchoPart = JsonObject &
  (
    | { type: 'text'; length: number }
    | { type: 'call'; index: number; fingerprint: string }
    | { type: 'reasoning' | 'summary'; text: string }
    /** Provider-executed calls, and parts with a provider-specific format. */
    | { type: 'file'; index: number }
    | { type: 'tool-call' | 'tool-result' | 'reasoning-file' | 'custom' }
  )

/** The owner of a provider's items, because items from one provider are invalid for another. */
const getOwner = (provider: string): string => `ai-sdk/${provider}`

export function toProviderItems(
  provider: string,
  answer: Pick<ModelResponse, 'text' | 'toolCalls'>,
  parts: EchoPart[],
): ProviderItems | null {
  if (parts.every(isPlain)) return null
  const fingerprint = fingerprintAnswer(answer.text, answer.toolCalls)
  return { from: getOwner(provider), items: [{ fingerprint, parts }] }
}

function isPlain(part: EchoPart): boolean {
  return (part.type === 'text' || part.type === 'call') && part['providerOptions'] === undefined
}

export type Echo = NonNullable<ReturnType<typeof findEcho>>

/** The parts to send back to the provider of a message. Null if there are none, or if the provider is a different one. */
export function findEcho(
  { content, tool_calls: calls, provider_items: stored }: AssistantMessage,
  provider: string,
) {
  if (stored?.from !== getOwner(provider)) return null
  const entry = asObject(stored.items[0])
  const parts = asList(entry?.parts).filter(isPart)
  /** Whether the message is unchanged since the provider sent it. */
  const isWhole = asText(entry?.fingerprint) === fingerprintAnswer(content ?? '', calls ?? [])
  return parts.length === 0 || (!isWhole && parts.some(refersToServer)) ? null : { isWhole, parts }
}

export function readOptions(part: JsonObject): { providerOptions?: ProviderData } {
  const options = asObject(part['providerOptions'])
  return options === null ? {} : { providerOptions: options as ProviderData }
}

/** Whether a text is Anthropic's summary of the transcript. */
export function isCompaction(options: JsonObject | undefined): boolean {
  return asText(asObject(options?.['anthropic'])?.['type']) === 'compaction'
}

function isPart(part: Json): part is EchoPart {
  return asText(asObject(part)?.type) !== ''
}

/** Such a part is stale once the answer has been edited, for example by a shield. */
function refersToServer(part: EchoPart): boolean {
  const options = asObject(part['providerOptions'])
  return options !== null && Object.values(options).some((entry) => asText(asObject(entry)?.itemId) !== '')
}

function fingerprintAnswer(text: string, calls: readonly ToolCall[]): string {
  return hashWords([text, ...calls.map(fingerprintCall)])
}

export function fingerprintCall({ function: { name, arguments: input } }: ToolCall): string {
  return hashWords([name, input])
}

const hashWords = (words: readonly string[]): string => sha256(JSON.stringify(words)).slice(0, 16)

/**
 * Removes provider-executed calls without a result, because the answer was cut off and providers reject such calls. If
 * the answer also calls the agent's tools, the result follows in a later answer.
 */
export function keepAnswered(parts: readonly EchoPart[]): readonly EchoPart[] {
  const waits = parts.some(({ type }) => type === 'call')
  const results = new Set(parts.flatMap((part) => (part.type === 'tool-result' ? [part['toolCallId']] : [])))
  return waits ? parts : parts.filter((part) => part.type !== 'tool-call' || results.has(part['toolCallId']))
}

/**
 * Whether the package can send a provider-executed call back. Google's package sends code execution as a call without a
 * result, which Gemini rejects. Only parts with Gemini's id and type are sent back correctly.
 */
export function canSendBack(origin: string, options: ProviderData | undefined): boolean {
  if (!/^(google|vertex)\b(?!.*anthropic)/.test(origin)) return true
  return Object.values(options ?? {}).some((entry) => asText(entry['serverToolType']) !== '')
}
