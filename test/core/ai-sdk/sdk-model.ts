import { ReadableStream } from 'node:stream/web'
import type { AiSdkModel, SpecificationVersion } from '../../../src/ai-sdk/index.js'
import type { CallOptions } from '../../../src/ai-sdk/spec.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { HostedCall, ModelProvider, ModelRequest } from '../../../src/core/models/provider.js'

interface Given {
  version?: SpecificationVersion
  provider?: string
  urls?: Record<string, RegExp[]>
  sent?: CallOptions[]
}

/** An AI SDK model that returns these parts, streamed or whole. */
export function sdkModel(parts: readonly object[], input: Given = {}): AiSdkModel {
  const { version = 'v3', provider = 'mine.chat', urls = {}, sent = [] } = input
  const finish = { type: 'finish', finishReason: ending(version), usage: {} }
  return {
    specificationVersion: version,
    provider,
    modelId: 'm-1',
    supportedUrls: urls,
    doGenerate: (options) => {
      sent.push(options)
      return Promise.resolve({ ...finish, content: parts, warnings: [] })
    },
    doStream: (options) => {
      sent.push(options)
      const isEnded = parts.some((part) => 'finishReason' in part)
      return Promise.resolve({ stream: ReadableStream.from(isEnded ? parts : [...parts, finish]) })
    },
  }
}

function ending(version: SpecificationVersion): unknown {
  return version === 'v2' ? 'stop' : { unified: 'stop', raw: 'end' }
}

/** One answer of a provider and its events. */
export async function askOnce(provider: ModelProvider, request: Partial<ModelRequest> = {}) {
  const deltas: [text: string, reasoning: string][] = []
  const warnings: string[] = []
  const activity: string[] = []
  const hosted: HostedCall[] = []
  const response = await provider.request(
    { ...emptyRequest, ...request },
    {
      signal: new AbortController().signal,
      onDelta: (...delta) => deltas.push(delta),
      onActivity: (kind = 'content') => activity.push(kind),
      onWarning: (code, message) => warnings.push(`${code}: ${message}`),
      onHostedCall: (call) => hosted.push(call),
    },
  )
  return { response, deltas, warnings, activity, hosted }
}

const emptyRequest: ModelRequest = {
  instructions: null,
  messages: [{ role: 'user', id: 'm1', createdAt: 0, content: 'Hello.' }],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
  stream: true,
}

let ids = 0

export function message<Role extends Message['role']>(
  role: Role,
  fields: Omit<Extract<Message, { role: Role }>, 'role' | 'id' | 'createdAt'>,
): Message {
  return { role, id: `m${++ids}`, createdAt: 0, ...fields } as unknown as Message
}
