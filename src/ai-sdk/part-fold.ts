import type { Json, JsonObject } from '../../machines/agent/json.js'
import type { Annotation, MediaPart, ToolCall } from '../../machines/agent/messages.js'
import type { ModelResponse } from '../../machines/agent/model-response.js'
import { asObject, asText } from '../core/base/values.js'
import { ThinkSplitter } from '../core/models/openai/think-tags.js'
import { refuseTooLarge, type Delta, noDelta } from '../core/models/openai/answer-reader.js'
import { listDistinctCalls, type SentCall } from '../core/models/calls.js'
import { describeMediaList, toBase64, toContentPart } from '../core/models/media.js'
import { toPlainJson } from '../core/models/plain-json.js'
import { unsupportedApprovalError, unsupportedPauseError } from './ai-sdk-failure.js'
import { type EchoPart, fingerprintCall, isCompaction, toProviderItems } from './provider-echo.js'
import { createHostedCallTracker } from './hosted-calls.js'
import { toFinish, toUsage } from './ai-sdk-usage.js'
import { readRawFinish } from './raw-finish.js'

/** A piece of the answer, as far as it has come. */
type Block =
  | { type: 'text' | 'reasoning'; key: string; text: string; metadata: JsonObject }
  | {
      type: 'call'
      key: string
      name: string
      input: string
      hosted: boolean
      /** Its place among the calls that are told; undefined while it is not. */
      index: number | undefined
      /** The whole call has come: what else comes with its id may be another, where a provider counts badly. */
      whole: boolean
      metadata: JsonObject
    }
  | { type: 'other'; part: EchoPart }

export interface PartFold {
  /** Takes one part of a stream, or of the content of a whole answer. Returns what it adds to what is shown. */
  push(part: unknown): Delta
  /** The end, of a stream (its part `finish`) or of a whole answer. Returns what was held back until then. */
  finish(end: unknown): Delta
  /** The connection broke. Whether the provider's own chunks had announced the end: then nothing is missing. */
  finishBroken(): boolean
  /** Whether the end was announced: what comes now is no part of the answer. */
  readonly ended: boolean
  /** Grows with what is of the answer. */
  readonly progress: number
  getResponse(): ModelResponse
}

/**
 * Puts an answer together, of any version of the specification. `provider` is the model's own name for its provider;
 * `tellsCalls`: whether what it adds has the parts of calls.
 */
export function createPartFold(provider: string, version: string, tellsCalls = false): PartFold {
  const blocks: Block[] = []
  const media: MediaPart[] = []
  const annotations: Annotation[] = []
  const hosted = createHostedCallTracker()
  let model: string | null = null
  let responseId = ''
  let end: JsonObject | null = null
  let size = 0
  let progress = 0
  let toldCalls = 0
  let rawFinish = ''
  /** Thoughts in tags, by the block of text that they stood in. */
  const tagged = new Map<Block & { text: string }, { think: ThinkSplitter; text: string }>()

  function textBlock(type: 'text' | 'reasoning', key: string): Block & { text: string } {
    const known = blocks.findLast(
      (block): block is Block & { text: string } => block.type === type && block.key === key,
    )
    if (known !== undefined) return known
    const block = { type, key, text: '', metadata: {} }
    blocks.push(block)
    return block
  }

  function write(type: 'text' | 'reasoning', key: string, text: string, part: JsonObject): Delta {
    const block = textBlock(type, key)
    if (block.type !== 'other') mergeMetadata(block.metadata, part['providerMetadata'])
    grow(text.length)
    if (isSummary(block)) {
      block.text += text
      return noDelta
    }
    if (type === 'text') return writeWords(block, text, !/^text-(?:start|delta)$/.test(asText(part['type'])))
    if (text === '') return noDelta
    // Thoughts come in paragraphs; what is said is one text.
    const isNext = block.text === '' && hasThoughts()
    block.text += text
    return { text: '', reasoning: isNext ? paragraph + text : text }
  }

  function hasThoughts(): boolean {
    const isWritten = ({ text }: { text: string }): boolean => text !== ''
    return (
      blocks.some((block) => block.type === 'reasoning' && isWritten(block)) ||
      [...tagged.values()].some(isWritten)
    )
  }

  /** Text, without the thoughts that stand in it between tags. */
  function writeWords(block: Block & { text: string }, added: string, isEnd: boolean): Delta {
    const thoughts = tagged.get(block) ?? { think: new ThinkSplitter(), text: '' }
    tagged.set(block, thoughts)
    const [first, last] = [thoughts.think.push(added), isEnd ? thoughts.think.flush() : noDelta]
    const text = first.text + last.text
    const reasoning = first.reasoning + last.reasoning
    const isNext = reasoning !== '' && thoughts.text === '' && hasThoughts()
    block.text += text
    thoughts.text += reasoning
    return text === '' && reasoning === ''
      ? noDelta
      : { text, reasoning: isNext ? paragraph + reasoning : reasoning }
  }

  /** What is held back as the start of a tag. */
  function flush(): Delta {
    const held = [...tagged.keys()].map((block) => writeWords(block, '', true))
    return {
      text: held.map(({ text }) => text).join(''),
      reasoning: held.map(({ reasoning }) => reasoning).join(''),
    }
  }

  function callBlock(part: JsonObject, id: unknown): Block & { type: 'call' } {
    const key = asText(id)
    const latest = blocks.findLast(
      (block): block is Block & { type: 'call' } => block.type === 'call' && block.key === key,
    )
    const known = latest && isAnotherCall(part, latest) ? undefined : latest
    const block = known ?? {
      type: 'call',
      key,
      name: '',
      input: '',
      hosted: false,
      index: undefined,
      whole: false,
      metadata: {},
    }
    if (known === undefined) {
      blocks.push(block)
      progress += 1
    }
    block.name = asText(part['toolName']) || block.name
    block.hosted ||= part['providerExecuted'] === true
    mergeMetadata(block.metadata, part['providerMetadata'])
    return block
  }

  function keep(part: EchoPart): Delta {
    blocks.push({ type: 'other', part })
    progress += 1
    return noDelta
  }

  /** What a piece of a call adds: its arguments, or that the provider itself begins to carry it out. */
  function called(block: Block & { type: 'call' }, added: string): Delta {
    const { key, name } = block
    if (block.hosted) {
      const begins = hosted.begin(key, name)
      return begins.length === 0 ? noDelta : { ...noDelta, hosted: begins }
    }
    if (!tellsCalls || (block.index !== undefined && added === '')) return noDelta
    const index = (block.index ??= toldCalls++)
    return { ...noDelta, calls: [{ index, id: key, name, arguments: added }] }
  }

  /** Only calls of its own does a provider answer, whether it had said so or not. */
  function answeredCall(part: JsonObject): Delta {
    const id = asText(part['toolCallId'])
    const call = blocks.findLast(
      (block): block is Block & { type: 'call' } => block.type === 'call' && block.key === id,
    )
    if (call) call.hosted = true
    keep(toResultPart(part))
    return { ...noDelta, hosted: hosted.end(part, call && parseInput(call.input)) }
  }

  function grow(length: number): void {
    size += length
    progress += length
    refuseTooLarge(size)
  }

  function take(part: JsonObject): Delta {
    const id = asText(part['id'])
    switch (asText(part['type'])) {
      case 'text-start':
      case 'text-delta':
      case 'text-end':
        return write('text', id, asText(part['delta']), part)
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        return write('reasoning', id, asText(part['delta']), part)
      // Of a whole answer: each is a block of its own.
      case 'text':
      case 'reasoning':
        return write(part['type'] as 'text' | 'reasoning', `${blocks.length}`, asText(part['text']), part)
      case 'tool-input-start':
      case 'tool-input-end':
        return called(callBlock(part, id), '')
      case 'tool-input-delta': {
        const delta = asText(part['delta'])
        const block = callBlock(part, id)
        block.input += delta
        grow(delta.length)
        return called(block, delta)
      }
      case 'tool-call': {
        const { input } = part
        const block = callBlock(part, part['toolCallId'])
        const text = toInputText(input)
        grow(Math.max(0, text.length - block.input.length))
        const added = text.startsWith(block.input) ? text.slice(block.input.length) : ''
        block.input = text
        block.whole = true
        return called(block, added)
      }
      case 'tool-result':
        return part['preliminary'] === true ? noDelta : answeredCall(part)
      case 'file':
        media.push(toMediaPart(part))
        return keep({ type: 'file', index: media.length - 1, ...toProviderOptions(part['providerMetadata']) })
      case 'reasoning-file':
        return keep(toReasoningFile(part))
      case 'source':
        annotations.push(...toAnnotations(part))
        return noDelta
      case 'custom':
        return keep({
          type: 'custom',
          kind: asText(part['kind']),
          ...toProviderOptions(part['providerMetadata']),
        })
      case 'tool-approval-request':
        throw unsupportedApprovalError(asText(part['toolCallId']))
      case 'raw':
        rawFinish = readRawFinish(part['rawValue']) || rawFinish
        return noDelta
      case 'response-metadata':
        responseId = id || responseId
        model = asText(part['modelId']) || model
        return noDelta
      default:
        return noDelta
    }
  }

  return {
    get ended() {
      return end !== null
    },

    get progress() {
      return progress
    },

    push(part) {
      const given = asObject(part)
      return given === null ? noDelta : take(given)
    },

    finish(given) {
      end = asObject(given)
      progress += 1
      const response = asObject(end?.['response'])
      responseId = asText(response?.id) || responseId
      model = asText(response?.modelId) || model
      const isCut = toFinish(end?.['finishReason']).finishReason === 'length'
      if (!isCut && blocks.length > 0 && blocks.every(isSummary)) throw unsupportedPauseError()
      return flush()
    },

    finishBroken() {
      if (rawFinish !== '') end ??= { finishReason: rawFinish }
      flush()
      return end !== null
    },

    getResponse() {
      const written = listDistinctCalls(blocks, readSentCall)
      const said = joinBlocks(written, 'text', '')
      const toolCalls = toToolCalls(written)
      const text = said === '' && toolCalls.length === 0 ? describeMediaList(media) : said
      const { finishReason, complete } = toFinish(end?.['finishReason'])
      const items = toProviderItems(provider, { text, toolCalls }, toEchoParts(written, toolCalls))
      return {
        text,
        reasoning: [
          joinBlocks(blocks, 'reasoning', paragraph),
          ...[...tagged.values()].map(({ text }) => text),
        ]
          .filter((thought) => thought !== '')
          .join(paragraph),
        refusal: null,
        toolCalls,
        finishReason,
        complete: end !== null && complete,
        usage: toUsage(end?.['usage'], { version, provider, metadata: end?.['providerMetadata'] }),
        model,
        ...(media.length > 0 && { media: [...media] }),
        ...(annotations.length > 0 && { annotations: [...annotations] }),
        ...(items && { providerItems: items }),
        ...(responseId !== '' && { id: responseId }),
      }
    },
  }
}

const paragraph = '\n\n'

/** An id can come again with another call, so it identifies none here. */
function readSentCall(block: Block): SentCall | null {
  if (block.type !== 'call' || block.hosted) return null
  return { id: '', name: block.name, arguments: block.whole ? block.input || '{}' : block.input }
}

/** A summary of the transcript that Anthropic goes on with (compaction): a text by the package, and no part of the answer. */
function isSummary(block: Block): boolean {
  return block.type === 'text' && isCompaction(block.metadata)
}

/** Whether a part begins a further call under an id that one has already: no call is lost to another. */
function isAnotherCall(
  part: JsonObject,
  { key, name, input, hosted, whole }: Block & { type: 'call' },
): boolean {
  if (!whole || hosted) return false
  if (part['type'] !== 'tool-call') return part['type'] === 'tool-input-start'
  return key === '' || asText(part['toolName']) !== name || toInputText(part['input']) !== input
}

function toInputText(input: unknown): string {
  return typeof input === 'string' ? input : JSON.stringify(input ?? {})
}

function joinBlocks(blocks: readonly Block[], type: 'text' | 'reasoning', between: string): string {
  return blocks
    .flatMap((block) => (block.type === type && block.text !== '' && !isSummary(block) ? [block.text] : []))
    .join(between)
}

/** The calls that are ours to carry out. Their ids are made unique here: the echo counts on the order alone. */
function toToolCalls(blocks: readonly Block[]): ToolCall[] {
  return blocks.flatMap((block): ToolCall[] =>
    block.type !== 'call' || block.hosted
      ? []
      : [
          {
            id: block.key,
            type: 'function',
            function: { name: block.name, arguments: block.input.trim() === '' ? '{}' : block.input },
          },
        ],
  )
}

function toEchoParts(blocks: readonly Block[], toolCalls: readonly ToolCall[]): EchoPart[] {
  let calls = 0
  return blocks.flatMap((block): EchoPart[] => {
    if (block.type === 'other') return [block.part]
    const options = toProviderOptions(block.metadata)
    switch (block.type) {
      case 'text':
        if (isSummary(block)) return [{ type: 'summary', text: block.text, ...options }]
        return block.text === '' && options['providerOptions'] === undefined
          ? []
          : [{ type: 'text', length: block.text.length, ...options }]
      case 'reasoning':
        return [{ type: 'reasoning', text: block.text, ...options }]
      default:
        if (!block.hosted) {
          const index = calls++
          const call = toolCalls[index]
          return call === undefined ? [] : [{ type: 'call', index, said: fingerprintCall(call), ...options }]
        }
        return [
          {
            type: 'tool-call',
            toolCallId: block.key,
            toolName: block.name,
            input: parseInput(block.input),
            providerExecuted: true,
            ...options,
          },
        ]
    }
  })
}

function toResultPart(part: JsonObject): EchoPart {
  return {
    type: 'tool-result',
    toolCallId: asText(part['toolCallId']),
    toolName: asText(part['toolName']),
    output: {
      type: part['isError'] === true ? 'error-json' : 'json',
      value: toPlainJson(part['result']) ?? null,
    },
    ...toProviderOptions(part['providerMetadata']),
  }
}

function toMediaPart(part: JsonObject): MediaPart {
  const mediaType = asText(part['mediaType']) || 'application/octet-stream'
  const made = toContentPart({ type: 'file', mediaType, data: getData(part) }, 'file')
  return made.type === 'text' ? { type: 'file', file: {} } : made
}

/** Bytes and addresses in the one form that JSON has for them. */
function toReasoningFile(part: JsonObject): EchoPart {
  const held = getData(part)
  return {
    type: 'reasoning-file',
    mediaType: asText(part['mediaType']),
    ...(isURL(held) ? { url: held.href } : { data: isBytes(held) ? toBase64(held) : asText(held) }),
    ...toProviderOptions(part['providerMetadata']),
  }
}

/** v2 and v3 have the bare data, v4 says which kind it is. */
function getData({ data }: JsonObject): unknown {
  const tagged: Record<string, unknown> | null = asObject(data)
  return tagged?.['type'] === undefined ? data : (tagged['data'] ?? tagged['url'])
}

function toAnnotations(part: JsonObject): Annotation[] {
  const title = asText(part['title'])
  const titled = title === '' ? {} : { title }
  const url = asText(part['url'])
  if (url !== '') return [{ type: 'url_citation', url_citation: { url, ...titled } }]
  const filename = asText(part['filename']) || title
  return filename === '' ? [] : [{ type: 'file_citation', file_citation: { filename, ...titled } }]
}

function isURL(value: unknown): value is URL {
  return value instanceof URL
}

function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array
}

function mergeMetadata(into: JsonObject, metadata: unknown): void {
  for (const [name, own] of Object.entries(asObject(metadata) ?? {}))
    into[name] = { ...asObject(into[name]), ...asObject(own) }
}

/** What a provider said of a part is what it wants to be told with it. */
function toProviderOptions(metadata: unknown): { providerOptions?: JsonObject } {
  const plain = asObject(toPlainJson(metadata))
  const said = Object.entries(plain ?? {}).filter(([, own]) => Object.keys(asObject(own) ?? {}).length > 0)
  return said.length === 0 ? {} : { providerOptions: Object.fromEntries(said) }
}

function parseInput(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text.trim() === '' ? {} : text
  }
}
