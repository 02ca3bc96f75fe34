import type { Json, JsonObject } from '../../machines/agent/json.js'
import type { Annotation, MediaPart, ToolCall } from '../../machines/agent/messages.js'
import type { ModelResponse } from '../../machines/agent/model-response.js'
import { parseJsonOr } from '../core/base/json.js'
import { asObject, asText } from '../core/base/values.js'
import { ThinkSplitter } from '../core/models/openai/think-tags.js'
import { refuseTooLarge, type Delta, noDelta } from '../core/models/openai/answer-reader.js'
import { createHostedCallTracker, listDistinctCalls, type SentCall } from '../core/models/calls.js'
import { describeMediaList, toBase64, toContentPart } from '../core/models/media.js'
import { toPlainJson } from '../core/models/plain-json.js'
import { unsupportedApprovalError, unsupportedPauseError } from './ai-sdk-failure.js'
import { readRawFinish, toFinish, toUsage } from './ai-sdk-usage.js'
import { type EchoPart, fingerprintCall, isCompaction, toProviderItems } from './provider-echo.js'

interface TextBlock {
  type: 'text' | 'reasoning'
  key: string
  text: string
  metadata: JsonObject
  think: ThinkSplitter
  /** The reasoning in think tags within a text. */
  thoughts: string
}

interface CallBlock {
  type: 'call'
  key: string
  name: string
  input: string
  hosted: boolean
  /** The index among the reported calls, or undefined until the call is reported. */
  index: number | undefined
  /** Whether the call is complete. A later part with the same id may be another call, because some providers reuse ids. */
  whole: boolean
  metadata: JsonObject
}

function createTextBlock(type: TextBlock['type'], key: string): TextBlock {
  return { type, key, text: '', metadata: {}, think: new ThinkSplitter(), thoughts: '' }
}

type Block = TextBlock | CallBlock | { type: 'other'; part: EchoPart }

/** Assembles an answer of any version. `reportsCalls` includes streamed calls in the additions. */
export function createPartFold(provider: string, reportsCalls = false) {
  const blocks: Block[] = []
  const media: MediaPart[] = []
  const annotations: Annotation[] = []
  const trackHosted = createHostedCallTracker()
  let model: string | null = null
  let responseId = ''
  let end: JsonObject | null = null
  let size = 0
  let progress = 0
  let reportedCalls = 0
  let rawFinish = ''

  function findCall(key: string): CallBlock | undefined {
    return blocks.findLast((block): block is CallBlock => block.type === 'call' && block.key === key)
  }

  function write(type: 'text' | 'reasoning', key: string, text: string, part: JsonObject): Delta {
    const known = blocks.findLast((one): one is TextBlock => one.type === type && one.key === key)
    const block = known ?? createTextBlock(type, key)
    if (known === undefined) blocks.push(block)
    mergeMetadata(block.metadata, part['providerMetadata'])
    grow(text.length)
    if (isSummary(block)) {
      block.text += text
      return noDelta
    }
    if (type === 'text') return writeWords(block, text, !/^text-(?:start|delta)$/.test(asText(part['type'])))
    if (text === '') return noDelta
    // Reasoning blocks become paragraphs.
    const isNext = block.text === '' && hasThoughts()
    block.text += text
    return { text: '', reasoning: isNext ? paragraph + text : text }
  }

  const hasThoughts = (): boolean =>
    blocks.some((block) =>
      block.type === 'reasoning' ? block.text !== '' : block.type === 'text' && block.thoughts !== '',
    )

  function writeWords(block: TextBlock, added: string, isEnd: boolean): Delta {
    const { think } = block
    const [first, last] = [think.push(added), isEnd ? think.flush() : noDelta]
    const text = first.text + last.text
    const reasoning = first.reasoning + last.reasoning
    const isNext = reasoning !== '' && block.thoughts === '' && hasThoughts()
    block.text += text
    block.thoughts += reasoning
    if (text === '' && reasoning === '') return noDelta
    return { text, reasoning: isNext ? paragraph + reasoning : reasoning }
  }

  function flush(): Delta {
    const held = blocks.map((block) => (block.type === 'text' ? writeWords(block, '', true) : noDelta))
    const join = (key: 'text' | 'reasoning'): string => held.map((delta) => delta[key]).join('')
    return { text: join('text'), reasoning: join('reasoning') }
  }

  function callBlock(part: JsonObject, id: unknown): CallBlock {
    const key = asText(id)
    const latest = findCall(key)
    const known = latest && isAnotherCall(part, latest) ? undefined : latest
    const none = { name: '', input: '', hosted: false, index: undefined, whole: false }
    const block: CallBlock = known ?? { type: 'call', key, ...none, metadata: {} }
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

  function addToCall(block: CallBlock, added: string): Delta {
    const { key, name } = block
    if (block.hosted) {
      const started = trackHosted(key, key, name)
      return started.length === 0 ? noDelta : { ...noDelta, hosted: started }
    }
    if (!reportsCalls || (block.index !== undefined && added === '')) return noDelta
    const index = (block.index ??= reportedCalls++)
    return { ...noDelta, calls: [{ index, id: key, name, arguments: added }] }
  }

  /** A provider returns results only for calls that it executes, even if the calls are not marked as such. */
  function answeredCall(part: JsonObject): Delta {
    const id = asText(part['toolCallId'])
    const call = findCall(id)
    if (call) call.hosted = true
    keep(toResultPart(part))
    const { result = null, isError } = part
    const ended = (toolName: string): Json => ({
      type: 'tool-result',
      toolName,
      ...(call && { input: parseInput(call.input) }),
      result,
      ...(isError === true && { isError }),
    })
    return { ...noDelta, hosted: trackHosted(id, id, asText(part['toolName']), ended) }
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
      // Parts of a complete answer are separate blocks.
      case 'text':
      case 'reasoning':
        return write(part['type'] as 'text' | 'reasoning', `${blocks.length}`, asText(part['text']), part)
      case 'tool-input-start':
      case 'tool-input-end':
        return addToCall(callBlock(part, id), '')
      case 'tool-input-delta': {
        const delta = asText(part['delta'])
        const block = callBlock(part, id)
        block.input += delta
        grow(delta.length)
        return addToCall(block, delta)
      }
      case 'tool-call': {
        const { input } = part
        const block = callBlock(part, part['toolCallId'])
        const text = toInputText(input)
        grow(Math.max(0, text.length - block.input.length))
        const added = text.startsWith(block.input) ? text.slice(block.input.length) : ''
        block.input = text
        block.whole = true
        return addToCall(block, added)
      }
      case 'tool-result':
        return part['preliminary'] === true ? noDelta : answeredCall(part)
      case 'file':
        media.push(toMediaPart(part))
        return keep({ type: 'file', index: media.length - 1, ...readProviderOptions(part) })
      case 'reasoning-file':
        return keep(toReasoningFile(part))
      case 'source':
        annotations.push(...toAnnotations(part))
        return noDelta
      case 'custom':
        return keep({ type: 'custom', kind: asText(part['kind']), ...readProviderOptions(part) })
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
    /** Whether the end was received. Later parts do not belong to the answer. */
    get ended() {
      return end !== null
    },

    get progress() {
      return progress
    },

    push(part: unknown): Delta {
      const object = asObject(part)
      return object === null ? noDelta : take(object)
    },

    /** Ends the answer with the part `finish` of a stream, or with a complete answer. Returns the text held back until then. */
    finish(part: unknown): Delta {
      end = asObject(part)
      progress += 1
      const response = asObject(end?.['response'])
      responseId = asText(response?.id) || responseId
      model = asText(response?.modelId) || model
      const isCut = toFinish(end?.['finishReason']).finishReason === 'length'
      if (!isCut && blocks.length > 0 && blocks.every(isSummary)) throw unsupportedPauseError()
      return flush()
    },

    /** After a broken connection. Returns whether the raw chunks contained the end, so that nothing is missing. */
    finishBroken(): boolean {
      if (rawFinish !== '') end ??= { finishReason: rawFinish }
      flush()
      return end !== null
    },

    getResponse(): ModelResponse {
      const written = listDistinctCalls(blocks, readSentCall)
      const answerText = joinBlocks(written, 'text', '')
      const toolCalls = toToolCalls(written)
      const text = answerText === '' && toolCalls.length === 0 ? describeMediaList(media) : answerText
      const { finishReason, complete } = toFinish(end?.['finishReason'])
      const items = toProviderItems(provider, { text, toolCalls }, toEchoParts(written, toolCalls))
      const tagged = blocks.map((block) => (block.type === 'text' ? block.thoughts : ''))
      const thoughts = [joinBlocks(blocks, 'reasoning', paragraph), ...tagged]
      return {
        text,
        reasoning: thoughts.filter(Boolean).join(paragraph),
        refusal: null,
        toolCalls,
        finishReason,
        complete: end !== null && complete,
        usage: toUsage(end?.['usage'], { provider, metadata: end?.['providerMetadata'] }),
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

/** The id is empty because providers may reuse ids. */
function readSentCall(block: Block): SentCall | null {
  if (block.type !== 'call' || block.hosted) return null
  return { id: '', name: block.name, arguments: block.whole ? block.input || '{}' : block.input }
}

/** Anthropic's summary of the transcript (compaction), which packages report as text. */
function isSummary(block: Block): boolean {
  return block.type === 'text' && isCompaction(block.metadata)
}

function isAnotherCall(part: JsonObject, { key, name, input, hosted, whole }: CallBlock): boolean {
  if (!whole || hosted) return false
  if (part['type'] !== 'tool-call') return part['type'] === 'tool-input-start'
  return key === '' || asText(part['toolName']) !== name || toInputText(part['input']) !== input
}

function toInputText(input: unknown): string {
  return typeof input === 'string' ? input : JSON.stringify(input ?? {})
}

function joinBlocks(blocks: readonly Block[], type: 'text' | 'reasoning', between: string): string {
  const texts = blocks.map((block) => (block.type === type && !isSummary(block) ? block.text : ''))
  return texts.filter(Boolean).join(between)
}

/** The calls for the agent to execute. The echo refers to them by position. */
function toToolCalls(blocks: readonly Block[]): ToolCall[] {
  return blocks.flatMap((block): ToolCall[] => {
    if (block.type !== 'call' || block.hosted) return []
    const { key: id, name, input } = block
    return [{ id, type: 'function', function: { name, arguments: input.trim() === '' ? '{}' : input } }]
  })
}

function toEchoParts(blocks: readonly Block[], toolCalls: readonly ToolCall[]): EchoPart[] {
  let calls = 0
  return blocks.flatMap((block): EchoPart[] => {
    if (block.type === 'other') return [block.part]
    const options = toProviderOptions(block.metadata)
    if (block.type === 'call' && block.hosted) {
      const { key: toolCallId, name: toolName } = block
      const input = parseInput(block.input)
      return [{ type: 'tool-call', toolCallId, toolName, input, providerExecuted: true, ...options }]
    }
    if (block.type === 'call') {
      const index = calls++
      const call = toolCalls[index]
      return call ? [{ type: 'call', index, fingerprint: fingerprintCall(call), ...options }] : []
    }
    const { text } = block
    if (block.type === 'reasoning') return [{ type: 'reasoning', text, ...options }]
    if (isSummary(block)) return [{ type: 'summary', text, ...options }]
    const isEmpty = text === '' && options['providerOptions'] === undefined
    return isEmpty ? [] : [{ type: 'text', length: text.length, ...options }]
  })
}

function toResultPart(part: JsonObject): EchoPart {
  const type = part['isError'] === true ? 'error-json' : 'json'
  return {
    type: 'tool-result',
    toolCallId: asText(part['toolCallId']),
    toolName: asText(part['toolName']),
    output: { type, value: toPlainJson(part['result']) ?? null },
    ...readProviderOptions(part),
  }
}

function toMediaPart(part: JsonObject): MediaPart {
  const mediaType = asText(part['mediaType']) || 'application/octet-stream'
  const content = toContentPart({ type: 'file', mediaType, data: getData(part) }, 'file')
  return content.type === 'text' ? { type: 'file', file: {} } : content
}

function toReasoningFile(part: JsonObject): EchoPart {
  const data = getData(part)
  const bytes = data instanceof Uint8Array ? toBase64(data) : asText(data)
  return {
    type: 'reasoning-file',
    mediaType: asText(part['mediaType']),
    ...(data instanceof URL ? { url: data.href } : { data: bytes }),
    ...readProviderOptions(part),
  }
}

/** Data is plain in v2 and v3, and tagged in v4. */
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

function mergeMetadata(into: JsonObject, metadata: unknown): void {
  for (const [name, entry] of Object.entries(asObject(metadata) ?? {}))
    into[name] = { ...asObject(into[name]), ...asObject(entry) }
}

/** A part's metadata is sent back as its options. */
function toProviderOptions(metadata: unknown): { providerOptions?: JsonObject } {
  const entries = Object.entries(asObject(toPlainJson(metadata)) ?? {})
  const filled = entries.filter(([, entry]) => Object.keys(asObject(entry) ?? {}).length > 0)
  return filled.length === 0 ? {} : { providerOptions: Object.fromEntries(filled) }
}

const readProviderOptions = (part: JsonObject) => toProviderOptions(part['providerMetadata'])

function parseInput(text: string): Json {
  return parseJsonOr(text, text.trim() === '' ? {} : text) as Json
}
