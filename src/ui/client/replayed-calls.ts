import type { UIMessage, UIMessageChunk, UIMessagePart } from '../ui-message-chunks.js'

type InputChunk = Extract<UIMessageChunk, { type: 'tool-input-available' }>

/** A chunk as `useChat` gets it: it calls `onToolCall` for an input unless `providerExecuted` is set. */
export type PageChunk = UIMessageChunk | (InputChunk & { providerExecuted: boolean })

/**
 * Passes on the chunks of an answer that a page gets again, so that `onToolCall` is called only for the calls that wait for
 * it. A call that has its result would be carried out twice otherwise. `asked`: calls that this page has been asked to carry
 * out already.
 *
 * So `providerExecuted` is set at first, and unset for the calls that have no result when the answer rests.
 */
export async function* replayCalls(
  chunks: AsyncIterable<UIMessageChunk> | Iterable<UIMessageChunk>,
  asked: Set<string>,
): AsyncGenerator<PageChunk, void> {
  const open = new Map<string, InputChunk>()
  for await (const chunk of chunks) {
    switch (chunk.type) {
      case 'tool-input-available':
        open.set(chunk.toolCallId, chunk)
        yield { ...chunk, providerExecuted: true }
        continue
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
        open.delete(chunk.toolCallId)
        break
      case 'tool-approval-request': {
        const input = open.get(chunk.toolCallId)
        open.delete(chunk.toolCallId)
        if (input) yield { ...input, providerExecuted: false }
        break
      }
      case 'start-step':
        open.clear()
        break
      case 'finish':
        for (const [callId, input] of open) {
          if (asked.has(callId)) continue
          asked.add(callId)
          yield { ...input, providerExecuted: false }
        }
    }
    yield chunk
  }
}

/** Passes on the chunks of a new answer, and notes in `asked` the calls that the page is asked to carry out. */
export async function* noteCalls(
  chunks: AsyncIterable<UIMessageChunk>,
  asked: Set<string>,
): AsyncGenerator<PageChunk, void> {
  for await (const chunk of chunks) {
    if (chunk.type === 'tool-input-available') asked.add(chunk.toolCallId)
    yield chunk
  }
}

/** Whether a message of the history has a call that waits for the page. */
export function hasWaitingCall({ parts }: UIMessage): boolean {
  return parts.some((part) => 'toolCallId' in part && part.state === 'input-available')
}

/** The chunks that make a message of the history, as its stream had them. */
export function* toChunks({ id, metadata, parts }: UIMessage): Generator<UIMessageChunk> {
  yield { type: 'start', messageId: id, ...(metadata && { messageMetadata: metadata }) }
  for (const [at, part] of parts.entries()) yield* toPartChunks(part, `${id}.${at}`)
  yield {
    type: 'finish',
    finishReason: hasWaitingCall({ id, role: 'assistant', parts }) ? 'tool-calls' : 'stop',
  }
}

function* toPartChunks(part: UIMessagePart, id: string): Generator<UIMessageChunk> {
  switch (part.type) {
    case 'step-start':
      yield { type: 'start-step' }
      return
    case 'text':
      yield { type: 'text-start', id }
      yield { type: 'text-delta', id, delta: part.text }
      yield { type: 'text-end', id }
      return
    case 'reasoning':
      yield { type: 'reasoning-start', id }
      yield { type: 'reasoning-delta', id, delta: part.text }
      yield { type: 'reasoning-end', id }
      return
    case 'file':
      yield { type: 'file', url: part.url, mediaType: part.mediaType }
      return
    case 'source-url':
    case 'source-document':
    case 'steering-message':
      yield part
      return
  }
  if ('toolCallId' in part) yield* toCallChunks(part)
  else yield part
}

type CallPart = Extract<UIMessagePart, { toolCallId: string }>

function* toCallChunks(part: CallPart): Generator<UIMessageChunk> {
  const { toolCallId, input, title, type } = part
  const isDynamic = type === 'dynamic-tool'
  const toolName = isDynamic ? part.toolName : type.slice('tool-'.length)
  yield {
    type: 'tool-input-available',
    toolCallId,
    toolName,
    input,
    ...(isDynamic && { dynamic: true }),
    ...(title !== undefined && { title }),
  }
  switch (part.state) {
    case 'approval-requested':
      yield { type: 'tool-approval-request', toolCallId, approvalId: part.approval.id }
      return
    case 'output-available':
      yield { type: 'tool-output-available', toolCallId, output: part.output }
      return
    case 'output-error':
      yield { type: 'tool-output-error', toolCallId, errorText: part.errorText }
      return
    case 'output-denied':
      yield { type: 'tool-output-denied', toolCallId }
  }
}
