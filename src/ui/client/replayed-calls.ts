import type { PageChunk, UIMessage, UIMessageChunk, UIMessagePart } from '../ui-message-types.js'

type InputChunk = Extract<UIMessageChunk, { type: 'tool-input-available' }>

/**
 * Passes on the chunks of a replayed answer so that `useChat` calls `onToolCall` only for calls without a result; the others
 * would run twice. Sets `providerExecuted` on every call, and clears it for calls that have no result when the answer rests.
 * `requested`: calls that this page was already asked to execute.
 */
export async function* replayCalls(
  chunks: AsyncIterable<UIMessageChunk> | Iterable<UIMessageChunk>,
  requested: Set<string>,
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
          if (requested.has(callId)) continue
          requested.add(callId)
          yield { ...input, providerExecuted: false }
        }
    }
    yield chunk
  }
}

/** Passes on the chunks of a new answer, and collects the calls that the page is asked to execute. */
export async function* noteCalls(
  chunks: AsyncIterable<UIMessageChunk>,
  requested: Set<string>,
): AsyncGenerator<PageChunk, void> {
  for await (const chunk of chunks) {
    if (chunk.type === 'tool-input-available') requested.add(chunk.toolCallId)
    yield chunk
  }
}

export function hasWaitingCall({ parts }: UIMessage): boolean {
  return parts.some((part) => 'toolCallId' in part && part.state === 'input-available')
}

/** Converts a message back to the chunks of its stream. */
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
