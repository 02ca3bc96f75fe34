import { asText, getOrCreate } from '../base/values.js'
import type { AnswerStream } from '../live/answer-stream.js'
import type { ToolCallDelta } from '../models/provider.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { HoldBack } from '../shields/hold-back.js'
import type { AgentRuntime } from '../live/runtime.js'
import type { AskScope } from '../live/agent-parts.js'
import { loadScreening } from './run-tools.js'
import type { Json } from '../../../machines/agent/json.js'
import type { ModelResponse } from '../../../machines/agent/model-response.js'
import { withheldReasoning } from '../../../machines/agent/screening.js'
import { joinReadableTexts } from '../models/media.js'
import { isPlaceholder, nameCall, withoutPlaceholder } from '../models/calls.js'

interface StreamedCall {
  id: string
  name: string
  pending: string
  state: 'unnamed' | 'empty' | 'streams' | 'whole'
}

/** Uses final ids. Calls whose id may change, and calls to some tools, are emitted only when complete. */
export function createCallStream(
  stream: AnswerStream,
  wholeTools: readonly (string | undefined)[],
  toCallId = (id: string) => id,
) {
  let calls = new Map<number, StreamedCall>()
  let ids = new Set<string>()

  /** Whether the id is final. Repeated ids, and ids with a slash, may change when the answer is complete. */
  const isCertain = (id: string): boolean =>
    !id.includes('/') && ![...ids].some((known) => known === id || known.startsWith(`${id}/`))

  function begin(index: number, call: StreamedCall): void {
    const { name } = call
    if (call.id === '' || name === '') return
    const id = toCallId(call.id)
    call.id = id
    call.state = isCertain(id) && !wholeTools.includes(name) ? 'empty' : 'whole'
    ids.add(id)
    if (call.state === 'empty') emit(index, call, '')
  }

  function emit(index: number, { id, name }: StreamedCall, delta: string): void {
    stream.writeCall({ callId: id, name, index, delta })
  }

  return {
    restart(): void {
      calls = new Map()
      ids = new Set()
    },

    /** Writes a delta. Invalid deltas are ignored instead of failing the run. */
    write({ index, ...delta }: ToolCallDelta): void {
      if (!Number.isInteger(index)) return
      const [id, name, added] = [delta.id, delta.name, delta.arguments].map(asText) as [
        string,
        string,
        string,
      ]
      const call = getOrCreate(calls, index, (): StreamedCall => {
        return { id: '', name: '', pending: '', state: 'unnamed' }
      })
      if (call.state === 'whole') return
      if (call.state === 'streams') {
        if (added !== '') emit(index, call, added)
        return
      }
      call.id ||= id
      call.name ||= name
      call.pending += added
      if (call.state === 'unnamed') begin(index, call)
      if (call.state !== 'empty') return
      const trimmed = call.pending.trim()
      if (isPlaceholder(trimmed)) {
        // Drops the unlimited whitespace that some models emit.
        call.pending = trimmed
        return
      }
      const text = withoutPlaceholder(call.pending.trimStart())
      call.pending = ''
      call.state = 'streams'
      emit(index, call, text)
    },
  }
}

type Reasoning = Pick<
  ModelResponse,
  'reasoning' | 'reasoningDetails' | 'providerItems' | 'media' | 'annotations'
>

/** Omits what output shields block. Signed details and provider items are sent back unchanged or omitted. */
export async function clearReasoning<Response extends Reasoning>(
  scope: AskScope,
  response: Response,
): Promise<Response> {
  const { reasoning, reasoningDetails: details, providerItems: items, media, annotations, ...rest } = response
  const screenedReasoning = await screenReasoning(reasoning, scope)
  const isClear = async (texts: string): Promise<boolean> => (await screenReasoning(texts, scope)) === texts
  const keeps = async (value: Json | undefined): Promise<boolean> =>
    value !== undefined && screenedReasoning === reasoning && isClear(listTexts(value).join('\n'))
  return {
    ...rest,
    reasoning: screenedReasoning,
    ...((await keeps(details)) && { reasoningDetails: details }),
    ...((await keeps(items?.items)) && { providerItems: items }),
    // Only the text of pictures and documents can be screened.
    ...(media && (await isClear(joinReadableTexts(media))) && { media }),
    ...(annotations && (await isClear(listTexts(annotations).join('\n'))) && { annotations }),
  } as Response
}

async function screenReasoning(text: string, scope: AskScope) {
  if (text === '') return text
  const { screenText } = await loadScreening()
  const { action, content, findings } = await screenText(scope.parts, scope, 'output', text)
  scope.abort.throwIfAborted()
  for (const { shield, action: found, message, durationMs } of findings) {
    if (found === 'allow') continue
    const reported = found === 'block' ? 'redact' : found
    scope.runtime.emit({ type: 'shield', point: 'output', shield, action: reported, message, durationMs })
  }
  return action === 'block' ? withheldReasoning : content
}

function listTexts(value: Json): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => (keysWithoutText.has(key) ? [] : listTexts(item)))
}

/** Only the provider reads them. Shields would report ids and ciphertexts as secrets or card numbers. */
const keysWithoutText = new Set(
  `id call_id itemId fingerprint signature thoughtSignature redactedData encrypted_content reasoningEncryptedContent`.split(
    ' ',
  ),
)

export interface DeltaSink {
  write(text: string, reasoning: string): void
  restart(): void
  /** Ends the stream. Text that is still held back waits for the screening of the complete answer. */
  finish?(): Promise<void>
}

/** Streams the text that output shields have cleared, without reasoning. */
export function createClearedStream(scope: AskScope, stream: AnswerStream): DeltaSink {
  const { parts, context } = scope
  const { unscreenedText, continuedText } = context
  const begin = (): HoldBack => {
    const begun = new HoldBack({
      window: parts.shields.holdBack,
      ...(unscreenedText && { continues: { text: unscreenedText.text, released: continuedText } }),
      check: async (text) => (await loadScreening()).screenText(parts, scope, 'output', text),
      release: (text) => {
        if (begun === held) stream.write(text, '')
      },
    })
    return begun
  }
  let held = begin()
  return {
    write: (text) => {
      if (text !== '') held.write(text)
    },
    restart: () => {
      held = begin()
      stream.restart()
    },
    finish: async () => {
      await held.finish()
    },
  }
}

const noIds: ReadonlySet<string> = new Set()
const usedByRun = new WeakMap<AgentRuntime, { ids: Set<string>; messages: number }>()

export function createCallNamer(runtime: AgentRuntime, context: AgentContext): (id: string) => string {
  return (id) => nameCall(id, context.lastMessageNumber + 1, collectUsedIds(runtime, context))
}

/** Collects the call ids of a transcript. Reads each message once. A transcript without calls needs no set. */
function collectUsedIds(runtime: AgentRuntime, { messages }: AgentContext): ReadonlySet<string> {
  let used = usedByRun.get(runtime)
  for (let i = used?.messages ?? 0; i < messages.length; i += 1) {
    const message = messages[i]
    if (message?.role !== 'assistant' || !message.tool_calls) continue
    if (used === undefined) usedByRun.set(runtime, (used = { ids: new Set(), messages: 0 }))
    for (const { id } of message.tool_calls) used.ids.add(id)
  }
  if (used === undefined) return noIds
  used.messages = messages.length
  return used.ids
}
