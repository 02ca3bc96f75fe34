import { sha256 } from '../../guards/lib/sha256.js'
import type { Json, JsonObject } from '../../machines/agent/json.js'
import type { AssistantMessage, ProviderItems, ToolCall } from '../../machines/agent/messages.js'
import type { ModelResponse } from '../../machines/agent/model-response.js'
import { asList, asObject, asText } from '../core/base/values.js'
import type { ProviderData } from './spec.js'

/**
 * A piece of an answer that its provider wants back. What the message has itself is not repeated: of a text its length,
 * of a file its place among the files, of a call that too, and what it can be known by.
 */
export type EchoPart = JsonObject &
  (
    | { type: 'text'; length: number }
    | { type: 'call'; index: number; said: string }
    | { type: 'reasoning' | 'summary'; text: string }
    /** What the provider has done itself, and other things that it alone understands. */
    | { type: 'file'; index: number }
    | { type: 'tool-call' | 'tool-result' | 'reasoning-file' | 'custom' }
  )

export interface Echo {
  /** Whether the message still says what the provider had said. */
  isWhole: boolean
  parts: EchoPart[]
}

/** Whose items they are: those of one provider mean nothing to another. */
function getOwner(provider: string): string {
  return `ai-sdk/${provider}`
}

/** What an answer is kept with; nothing where there is nothing to send back. */
export function toProviderItems(
  provider: string,
  answer: Pick<ModelResponse, 'text' | 'toolCalls'>,
  parts: EchoPart[],
): ProviderItems | null {
  if (parts.every(isPlain)) return null
  return {
    from: getOwner(provider),
    items: [{ said: fingerprintAnswer(answer.text, answer.toolCalls), parts }],
  }
}

function isPlain(part: EchoPart): boolean {
  return (part.type === 'text' || part.type === 'call') && part['providerOptions'] === undefined
}

/** What goes back with a message to the provider that wrote it; null when there is nothing, or it was another's. */
export function findEcho(
  { content, tool_calls: calls, provider_items: kept }: AssistantMessage,
  provider: string,
): Echo | null {
  if (kept?.from !== getOwner(provider)) return null
  const entry = asObject(kept.items[0])
  const parts = asList(entry?.parts).filter(isPart)
  const isWhole = asText(entry?.said) === fingerprintAnswer(content ?? '', calls ?? [])
  return parts.length === 0 || (!isWhole && parts.some(refersToServer)) ? null : { isWhole, parts }
}

export function readOptions(part: JsonObject): { providerOptions?: ProviderData } {
  const options = asObject(part['providerOptions'])
  return options === null ? {} : { providerOptions: options as ProviderData }
}

/** Whether what a package says of a text means that it is Anthropic's summary of the transcript. */
export function isCompaction(options: JsonObject | undefined): boolean {
  return asText(asObject(options?.['anthropic'])?.['type']) === 'compaction'
}

function isPart(part: Json): part is EchoPart {
  return asText(asObject(part)?.type) !== ''
}

/**
 * What a provider keeps by an id goes back as that id: as it was then. Where something of the answer has been changed since
 * (a shield has redacted it), all of it is written out instead.
 */
function refersToServer(part: EchoPart): boolean {
  const options = asObject(part['providerOptions'])
  return options !== null && Object.values(options).some((own) => asText(asObject(own)?.itemId) !== '')
}

function fingerprintAnswer(text: string, calls: readonly ToolCall[]): string {
  return hashWords([text, ...calls.map(fingerprintCall)])
}

/** What a call is known by: its name and its arguments. */
export function fingerprintCall({ function: { name, arguments: input } }: ToolCall): string {
  return hashWords([name, input])
}

function hashWords(said: readonly string[]): string {
  return sha256(JSON.stringify(said)).slice(0, 16)
}
